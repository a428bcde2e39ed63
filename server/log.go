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

// log answers with the current log of a task, or with the part of it that the header
// Range asks for.
func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	id, ok := s.logID(w, r)
	if !ok {
		return
	}
	switch to, err := s.logWay(r, id); {
	case err != nil:
		s.to.write(w, encoded(nil, err))
	case to != nil:
		s.forwardLog(w, r, to)
	default:
		s.ownLog(w, r, id)
	}
}

// logID returns the task of a request for a log, and answers a request without one.
func (s *Server) logID(w http.ResponseWriter, r *http.Request) (id queue.ID, ok bool) {
	id, err := queue.ParseID(r.URL.Query().Get(wire.QueryID))
	if err != nil {
		s.to.write(w, encoded(nil, err))
	}
	return id, err == nil
}

// ownLog is log for a log of this process.
func (s *Server) ownLog(w http.ResponseWriter, r *http.Request, id queue.ID) {
	known := r.Header.Get(wire.LogFile)
	if text := r.URL.Query().Get(wire.QuerySize); text != "" {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			s.to.write(w, encoded(nil, fmt.Errorf("%w: the size %.40q is not a number of bytes", queue.ErrInvalid, text)))
			return
		}
		if !s.streams.enter(w) {
			return
		}
		s.awaitLog(r.Context(), id, size, known)
		s.streams.leave()
	}
	f, err := s.openLog(id)
	if err != nil {
		s.to.write(w, encoded(nil, err))
		return
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	text, ok := f.(io.ReadSeeker)
	if err != nil || !ok {
		s.to.write(w, encoded(nil, errors.Join(errors.New("the log cannot be read"), err)))
		return
	}
	s.to.setDeadline(http.NewResponseController(w).SetWriteDeadline)
	h := w.Header()
	if file := s.fileOfLog(f); file != "" {
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

// awaitLog waits until the log of a task has another size than the client has seen, is
// another file, or the task is finished, but no longer than [wire.Alive].
func (s *Server) awaitLog(ctx context.Context, id queue.ID, size int64, file string) {
	if s.cfg.Follow == nil {
		return
	}
	news, stop := s.cfg.Follow(id) // before the first check, so that no change is missed
	defer stop()
	patience := time.NewTimer(wire.Alive)
	defer patience.Stop()
	for s.isLog(id, size, file) && s.unfinished(ctx, id) {
		if isNew, _ := s.streams.await(ctx, news, patience.C); !isNew {
			return
		}
	}
}

// isLog reports whether the log of a task has a size and is still the given file. The
// file is not compared if its identity is empty or unknown here. A missing log has size
// 0.
func (s *Server) isLog(id queue.ID, size int64, file string) bool {
	f, err := s.openLog(id)
	if err != nil {
		return errors.Is(err, queue.ErrNotFound) && size == 0
	}
	defer func() { _ = f.Close() }() // only examined
	info, err := f.Stat()
	if err != nil || info.Size() != size {
		return false
	}
	now := s.fileOfLog(f)
	return file == "" || now == "" || now == file
}

// fileOfLog returns the identity of a log for [wire.LogFile], or "" if it is unknown.
func (s *Server) fileOfLog(f fs.File) string {
	if s.cfg.LogFile == nil {
		return ""
	}
	return s.cfg.LogFile(f)
}

// unfinished reports whether a task exists and is not finished.
func (s *Server) unfinished(ctx context.Context, id queue.ID) bool {
	tasks, err := s.store.Find(ctx, queue.Filter{IDs: []queue.ID{id}}, queue.Page{Limit: 1})
	return err == nil && len(tasks) == 1 && !tasks[0].State.Finished()
}

func (s *Server) openLog(id queue.ID) (fs.File, error) {
	if s.cfg.Logs == nil {
		return nil, fmt.Errorf("%w: this server does not keep the logs of tasks", queue.ErrNotFound)
	}
	f, err := s.cfg.Logs.Open(LogName(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no log of task %s", queue.ErrNotFound, id)
	}
	return f, err
}
