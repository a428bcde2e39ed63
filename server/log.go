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

// LogName is the name of a task's log in [Config.Logs].
func LogName(id queue.ID) string { return id.String() + ".log" }

// log answers with the log of a task as it is now, or the part of it that is
// asked for by a Range.
func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	id, err := queue.ParseID(r.URL.Query().Get(wire.QueryID))
	if err != nil {
		s.write(w, encoded(nil, err))
		return
	}
	if text := r.URL.Query().Get(wire.QuerySize); text != "" {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			s.write(w, encoded(nil, fmt.Errorf("%w: the size %.40q is no number of bytes", queue.ErrInvalid, text)))
			return
		}
		if !s.enter(w) {
			return
		}
		s.awaitLog(r.Context(), id, size)
		s.leave()
	}
	f, err := s.openLog(id)
	if err != nil {
		s.write(w, encoded(nil, err))
		return
	}
	defer func() { _ = f.Close() }() // it was read
	info, err := f.Stat()
	text, ok := f.(io.ReadSeeker)
	if err != nil || !ok {
		s.write(w, encoded(nil, errors.Join(errors.New("the log cannot be read"), err)))
		return
	}
	s.hurry(http.NewResponseController(w).SetWriteDeadline)
	h := w.Header()
	h.Set("Content-Type", wire.Bytes) // what a program writes is nothing for a browser to interpret
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", info.ModTime(), text)
}

// awaitLog returns when the log of a task has another size than the client knows, the
// task is finished, or there is no more time for waiting.
func (s *Server) awaitLog(ctx context.Context, id queue.ID, known int64) {
	if s.cfg.Follow == nil {
		return
	}
	news, stop := s.cfg.Follow(id) // before the first look
	defer stop()
	patience := time.NewTimer(wire.Alive)
	defer patience.Stop()
	for s.sizeOfLog(id) == known && s.unfinished(ctx, id) {
		if isNew, _ := s.await(ctx, news, patience.C); !isNew {
			return
		}
	}
}

// sizeOfLog is 0 also if there is no log yet, and less if it cannot be read.
func (s *Server) sizeOfLog(id queue.ID) int64 {
	f, err := s.openLog(id)
	if errors.Is(err, queue.ErrNotFound) {
		return 0
	}
	if err != nil {
		return -1
	}
	defer func() { _ = f.Close() }() // nothing was done with it
	info, err := f.Stat()
	if err != nil {
		return -1
	}
	return info.Size()
}

// unfinished reports whether there is such a task, and more may come of it.
func (s *Server) unfinished(ctx context.Context, id queue.ID) bool {
	tasks, err := s.store.Find(ctx, queue.Filter{IDs: []queue.ID{id}}, queue.Page{Limit: 1})
	return err == nil && len(tasks) == 1 && !tasks[0].State.Finished()
}

func (s *Server) openLog(id queue.ID) (fs.File, error) {
	if s.cfg.Logs == nil {
		return nil, fmt.Errorf("%w: this server keeps no logs of tasks", queue.ErrNotFound)
	}
	f, err := s.cfg.Logs.Open(LogName(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w, or none that has written a log: %s", queue.ErrNotFound, id)
	}
	return f, err
}
