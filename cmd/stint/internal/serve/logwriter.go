package serve

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/server"
)

// logWriter writes to the log of an attempt, and notifies its readers. While the attempt
// runs, the tail of an output that is too long is stored in a file of its own: a log only
// grows, so that readers keep their position.
type logWriter struct {
	file   *os.File
	logs   *logs
	id     queue.ID
	tailed bool // the tail's file exists
	failed bool // a write has failed, so the log may lack what the tail has
}

var _ isolate.TailKeeper = (*logWriter)(nil)

// Write implements [io.Writer].
func (w *logWriter) Write(p []byte) (int, error) {
	defer w.logs.readers.wake(w.id)
	n, err := w.file.Write(p)
	w.failed = w.failed || err != nil
	return n, err
}

// KeepTail implements [isolate.TailKeeper]. The tail survives the end of this process,
// but not necessarily a power failure.
func (w *logWriter) KeepTail(text []byte) error {
	err := w.logs.replace(server.LogName(w.id)+tailSuffix, text)
	w.tailed = w.tailed || err == nil
	return err
}

// Close implements [io.Closer]. It removes the tail, which has been added to the log by then,
// unless that has failed: the next attempt or the next start adds it again.
func (w *logWriter) Close() error {
	err := w.file.Close()
	if w.tailed && !w.failed && err == nil {
		err = w.logs.root.Remove(server.LogName(w.id) + tailSuffix)
	}
	return err
}

// replace replaces a file as a whole.
func (l *logs) replace(name string, text []byte) error {
	const owner = 0o600
	err := l.root.WriteFile(name+newSuffix, text, owner)
	if err == nil {
		err = l.root.Rename(name+newSuffix, name)
	}
	if err != nil {
		_ = l.root.Remove(name + newSuffix) // it takes space, which may be what is missing
	}
	return err
}

// Endings of the names of files beside a log: the tail of a running attempt, and a file
// that is being written.
const (
	tailSuffix = ".tail"
	newSuffix  = ".new"
)

// recoverFiles removes the files that a killed server has written in part, and adds the tails that it
// has left to their logs. If a log cannot be written, its tail is kept for the next start.
func (l *logs) recoverFiles() {
	entries, err := fs.ReadDir(l.files(), ".")
	if err != nil {
		return // tidy reports the same error
	}
	for _, entry := range entries {
		if name, part := strings.CutSuffix(entry.Name(), newSuffix); part {
			if _, ok := idOf(strings.TrimSuffix(name, tailSuffix)); ok {
				_ = l.root.Remove(entry.Name()) // the log or the tail before it is valid
			}
			continue
		}
		name, isTail := strings.CutSuffix(entry.Name(), tailSuffix)
		if !isTail {
			continue
		}
		if err := l.recoverTail(name); err != nil {
			l.logger.Error("the end of an output is in a file beside its log",
				slog.String("file", entry.Name()), slog.Any("error", err))
		}
	}
}

// recoverTail adds the tail of a log, if there is one, to it: as a whole or not at all.
func (l *logs) recoverTail(name string) error {
	text, err := l.root.ReadFile(name + tailSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := l.root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) { // the task was forgotten
		return l.root.Remove(name + tailSuffix)
	}
	if err != nil {
		return err
	}
	if err = errors.Join(appendWhole(f, text), f.Close()); err != nil {
		return err
	}
	return l.root.Remove(name + tailSuffix)
}

// appendWhole appends text to a file, or nothing if it cannot be written as a whole.
func appendWhole(f *os.File, text []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err = f.Write(text); err != nil {
		err = errors.Join(err, f.Truncate(info.Size()))
	}
	return err
}
