package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/ownership"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/server"
)

// logs stores the output of commands: a file per task, with all its attempts in order. A
// log is removed when its task is forgotten, or earlier, oldest first, if all logs
// together exceed their limit.
type logs struct {
	root   *os.Root
	each   int64  // of earlier attempts, kept when another begins; in bytes
	all    int64  // of all logs together; in bytes
	store  string // names the stores of the server, one a line
	logger *slog.Logger

	// Owned by tidy.
	adopted bool // the logs are those of store
	warned  bool // that they may not be

	readers readers
}

// DefaultLogsMax is the default of LogsMax of [Config]. That of the output of one command is
// [isolate.DefaultOutput].
const DefaultLogsMax = 1 << 30

func openLogs(dir string, each, all int64, store string, logger *slog.Logger) (*logs, error) {
	const ownerOnly = 0o700 // the output of commands is private to their user
	if err := os.MkdirAll(dir, ownerOnly); err != nil {
		return nil, fmt.Errorf("%w; the logs of commands are stored there: move the file that is in the way", err)
	}
	if err := ownership.Directory(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	l := &logs{
		root: root, each: cmp.Or(each, isolate.DefaultOutput), all: cmp.Or(all, DefaultLogsMax), store: store, logger: logger,
	}
	l.recoverFiles()
	return l, nil
}

// files returns the logs for reading.
func (l *logs) files() fs.FS { return l.root.FS() }

// open opens the log of a task for another attempt, and writes a heading. Its errors are
// [queue.Shortage]: a fault of the directory is not a failure of the task.
func (l *logs) open(_ context.Context, t *queue.Task) (io.WriteCloser, error) {
	log, err := l.openFor(t)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the directory was removed; start the server again, which makes it: %w", err)
	}
	if err != nil {
		return nil, queue.Shortage(fmt.Errorf("%s: %w", l.root.Name(), err))
	}
	return log, nil
}

func (l *logs) openFor(t *queue.Task) (io.WriteCloser, error) {
	name := server.LogName(t.ID)
	if err := l.recoverTail(name); err != nil { // of an attempt whose end could not be written
		return nil, err
	}
	if err := l.shorten(name); err != nil {
		return nil, err
	}
	const owner = 0o600
	f, err := l.root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, owner)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(f, heading(t)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l.readers.wake(t.ID) // the log may have been replaced
	return &logWriter{file: f, logs: l, id: t.ID}, nil
}

// heading returns the line that precedes an attempt. The first attempt, the only one of
// most tasks, has none. Once the task has dropped steps, the number of the attempt is not known.
func heading(t *queue.Task) string {
	attempt := 0
	for _, step := range t.Steps {
		if step.On == queue.OnClaim {
			attempt++
		}
	}
	if attempt <= 1 {
		return ""
	}
	begun := t.Steps[len(t.Steps)-1].At
	later := ""
	if len(t.Steps) == queue.MaxSteps {
		later = " or later"
	}
	return fmt.Sprintf("[attempt %d%s, %s]\n", attempt, later, begun.Format(time.RFC3339))
}

// shorten removes the beginning of a log that is too long. Readers that follow it start
// again.
func (l *logs) shorten(name string) error {
	old, err := l.root.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	defer func() { _ = old.Close() }() // only read
	info, err := old.Stat()
	if err != nil || info.Size() <= l.each {
		return err
	}
	rest, err := io.ReadAll(io.NewSectionReader(old, info.Size()-l.each/2, l.each/2))
	if err != nil {
		return err
	}
	return l.replace(name, slices.Concat([]byte("[what was before this has been dropped]\n"), rest))
}

// tidyEvery is the interval between two cleanups of the logs.
const tidyEvery = 10 * time.Minute

// tidyUntil removes the logs of forgotten tasks until ctx ends: on the events of the
// store, and every [tidyEvery] for tasks whose event was missed.
func (l *logs) tidyUntil(ctx context.Context, q *queue.Queue) {
	var removing sync.WaitGroup
	removing.Go(func() { l.watch(ctx, q) })
	defer removing.Wait()
	l.tidy(ctx, q)
	ticker := time.NewTicker(tidyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.tidy(ctx, q)
		case <-ctx.Done():
			return
		}
	}
}

// watch removes the logs of tasks when they are forgotten, and notifies the readers of
// finished ones, until ctx ends; tidy finds what it misses.
func (l *logs) watch(ctx context.Context, q *queue.Queue) {
	for e, err := range q.Events(ctx) {
		if err != nil || e.Missed > 0 {
			l.readers.wakeAll()
		}
		if err != nil {
			continue
		}
		if e.On == queue.OnForget {
			l.remove(e.ID)
		}
		if e.On == queue.OnForget || e.To.Finished() {
			l.readers.wake(e.ID)
		}
	}
}

// remove removes the log of a task, and the tail that could not be added to it.
func (l *logs) remove(id queue.ID) {
	for _, name := range [...]string{server.LogName(id), server.LogName(id) + tailSuffix} {
		if err := l.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.logger.Error("remove a log", slog.String("file", name), slog.Any("error", err))
		}
	}
}

// logFile is a log in a cleanup.
type logFile struct {
	id   queue.ID
	size int64
	at   time.Time // last write
}

// tidy removes the logs of tasks that no longer exist, unless they may be of another store, and
// then the oldest logs if the rest exceeds the limit.
func (l *logs) tidy(ctx context.Context, q *queue.Queue) {
	all, err := l.list()
	if err != nil {
		l.logger.Error("look through the logs", slog.Any("error", err))
		return
	}
	var kept, unknown []logFile
	const atOnce = 500
	for part := range slices.Chunk(all, atOnce) {
		states, err := statesOf(ctx, q, part)
		if err != nil {
			return // possible while the server stops: the next cleanup removes the logs
		}
		for _, f := range part {
			if state, ok := states[f.id]; !ok {
				unknown = append(unknown, f)
			} else if state.Finished() {
				kept = append(kept, f)
			}
		}
	}
	if !l.adopt(len(all), len(unknown)) {
		kept, unknown = append(kept, unknown...), nil
	}
	for _, f := range unknown {
		l.remove(f.id)
	}
	l.limit(kept)
}

// ownerName is the file that names the stores of the logs, one a line.
const ownerName = "STORE"

// adopt reports whether the logs are those of the store, so that it has forgotten the tasks that
// it does not know. A server that is started with another store, or without a group, keeps them:
// the file [ownerName] names the stores of the first cleanup that knew the tasks of all logs, or of
// some if there was no such file, because a version before this one has left the logs. A server that
// has these stores and more replaces the file.
func (l *logs) adopt(all, unknown int) bool {
	if l.adopted {
		return true
	}
	owner, err := l.root.ReadFile(ownerName)
	none := errors.Is(err, fs.ErrNotExist)
	name, own := l.store, strings.Split(l.store, "\n")
	foreign := func(store string) bool { return !slices.Contains(own, store) }
	known := err == nil && !slices.ContainsFunc(strings.Split(string(owner), "\n"), foreign)
	l.adopted = known || unknown == 0 || none && unknown < all
	if !l.adopted {
		name = "another store"
	}
	if none || l.adopted && string(owner) != name {
		const ownerOnly = 0o600
		if err := l.root.WriteFile(ownerName, []byte(name), ownerOnly); err != nil {
			l.logger.Error("name the store of the logs", slog.Any("error", err))
		}
	}
	if !l.adopted && !l.warned {
		l.warned = true
		l.logger.Warn("the store does not know the tasks of some logs, which may be those of another store: they are kept "+
			"while there is room; check --store and --dir, or remove the logs if they are not needed",
			slog.String("logs", l.root.Name()), slog.Int("unknown", unknown), slog.String("store", l.store),
			slog.String("store_of_the_logs", string(owner)))
	}
	return l.adopted
}

// limit removes the oldest logs of finished tasks until the rest is within the limit.
func (l *logs) limit(finished []logFile) {
	slices.SortFunc(finished, func(a, b logFile) int { return b.at.Compare(a.at) })
	var sum int64
	for _, f := range finished {
		if sum += f.size; sum > l.all {
			l.remove(f.id)
		}
	}
}

// statesOf returns the states of the tasks that exist.
func statesOf(ctx context.Context, q *queue.Queue, files []logFile) (map[queue.ID]queue.State, error) {
	filter := queue.Filter{IDs: make([]queue.ID, 0, len(files))} // not nil: without files it finds no task
	for _, f := range files {
		filter.IDs = append(filter.IDs, f.id)
	}
	states := make(map[queue.ID]queue.State, len(files))
	for t, err := range q.Find(ctx, filter) {
		if err != nil {
			return nil, err
		}
		states[t.ID] = t.State
	}
	return states, nil
}

// list returns all logs.
func (l *logs) list() (all []logFile, err error) {
	entries, err := fs.ReadDir(l.files(), ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		id, ok := idOf(entry.Name())
		info, gone := entry.Info()
		if ok && gone == nil {
			all = append(all, logFile{id, info.Size(), info.ModTime()})
		}
	}
	return all, nil
}

// idOf returns the task of the log with a name, and whether it is the name of a log.
func idOf(name string) (id queue.ID, ok bool) {
	text, _, _ := strings.Cut(name, ".")
	id, err := queue.ParseID(text)
	return id, err == nil && name == server.LogName(id)
}
