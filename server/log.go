package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// LogName returns the name of a task's log in [Config.Logs].
func LogName(id queue.ID) string { return id.String() + ".log" }

// logs serves the logs of tasks. It is immutable; its functions and files are those of
// [Config].
type logs struct {
	store   queue.Store
	files   fs.FS
	follow  func(id queue.ID) (news <-chan struct{}, stop func())
	file    func(log fs.File) string
	at      func(ctx context.Context, id queue.ID) (http.RoundTripper, error)
	streams *streams
	to      *responder
}

// serve answers with the current log of a task, or with the part of it that the header
// Range asks for.
func (l *logs) serve(w http.ResponseWriter, r *http.Request) {
	id, ok := l.idIn(w, r)
	if !ok {
		return
	}
	switch to, err := l.transportFor(r, id); {
	case err != nil:
		l.to.write(w, encoded(nil, err))
	case to != nil:
		l.forward(w, r, to)
	default:
		l.serveOwn(w, r, id)
	}
}

// idIn returns the task of a request for a log, and answers a request without one.
func (l *logs) idIn(w http.ResponseWriter, r *http.Request) (id queue.ID, ok bool) {
	id, err := queue.ParseID(r.URL.Query().Get(wire.QueryID))
	if err != nil {
		l.to.write(w, encoded(nil, err))
	}
	return id, err == nil
}

// serveOwn is serve for a log of this process.
func (l *logs) serveOwn(w http.ResponseWriter, r *http.Request, id queue.ID) {
	known := r.Header.Get(wire.LogFile)
	if text := r.URL.Query().Get(wire.QuerySize); text != "" {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			l.to.write(w, encoded(nil, fmt.Errorf("%w: the size %.40q is not a number of bytes", queue.ErrInvalid, text)))
			return
		}
		if !l.streams.enter(w) {
			return
		}
		l.await(r.Context(), id, size, known)
		l.streams.leave()
	}
	f, err := l.open(id)
	if err != nil {
		l.to.write(w, encoded(nil, err))
		return
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	text, ok := f.(io.ReadSeeker)
	if err != nil || !ok {
		l.to.write(w, encoded(nil, errors.Join(errors.New("the log cannot be read"), err)))
		return
	}
	l.to.setDeadline(http.NewResponseController(w).SetWriteDeadline)
	h := w.Header()
	if file := l.identity(f); file != "" {
		h.Set(wire.LogFile, file)
		if known != "" && known != file {
			r = r.Clone(r.Context())
			r.Header.Del("Range")
		}
	}
	h.Set("Content-Type", wire.Bytes) // keeps browsers from interpreting the output of programs
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", info.ModTime(), text)
}

// await waits until the log of a task has another size than the client has seen, is
// another file, or the task is finished, but no longer than [wire.Alive].
func (l *logs) await(ctx context.Context, id queue.ID, size int64, file string) {
	if l.follow == nil {
		return
	}
	news, stop := l.follow(id) // before the first check, so that no change is missed
	defer stop()
	patience := time.NewTimer(wire.Alive)
	defer patience.Stop()
	for l.unchanged(id, size, file) && l.unfinished(ctx, id) {
		if isNew, _ := l.streams.await(ctx, news, patience.C); !isNew {
			return
		}
	}
}

// unchanged reports whether the log of a task has a size and is still the given file. The
// file is not compared if its identity is empty or unknown here. A missing log has size
// 0.
func (l *logs) unchanged(id queue.ID, size int64, file string) bool {
	f, err := l.open(id)
	if err != nil {
		return errors.Is(err, queue.ErrNotFound) && size == 0
	}
	defer func() { _ = f.Close() }() // only examined
	info, err := f.Stat()
	if err != nil || info.Size() != size {
		return false
	}
	now := l.identity(f)
	return file == "" || now == "" || now == file
}

// identity returns the identity of a log for [wire.LogFile], or "" if it is unknown.
func (l *logs) identity(f fs.File) string {
	if l.file == nil {
		return ""
	}
	return l.file(f)
}

// unfinished reports whether a task exists and is not finished.
func (l *logs) unfinished(ctx context.Context, id queue.ID) bool {
	tasks, err := l.store.Find(ctx, queue.Filter{IDs: []queue.ID{id}}, queue.Page{Limit: 1})
	return err == nil && len(tasks) == 1 && !tasks[0].State.Finished()
}

func (l *logs) open(id queue.ID) (fs.File, error) {
	if l.files == nil {
		return nil, fmt.Errorf("%w: this server does not keep the logs of tasks", queue.ErrNotFound)
	}
	f, err := l.files.Open(LogName(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no log of task %s", queue.ErrNotFound, id)
	}
	return f, err
}
