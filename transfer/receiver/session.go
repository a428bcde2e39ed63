package receiver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// Causes that end a request before its body has ended.
var (
	errTakenOver = errors.New("another request for this upload has taken over")
	errClosing   = errors.New("the server is being stopped")
)

// session is a request while it is the only one that may change an upload.
type session struct {
	u       *upload
	ctx     context.Context //nolint:containedctx // of the request, ended by interrupt
	cancel  context.CancelCauseFunc
	w       http.ResponseWriter
	conn    *http.ResponseController
	done    chan struct{} // closed by end
	unwatch func() bool   // ends the wait for Close of the receiver
	timer   *time.Timer   // calls silent; owned by the bodyReader

	mu          sync.Mutex
	interrupted bool
	reading     bool      // the body
	until       time.Time // when the client has been silent for too long; zero unless a Read is under way
	ended       bool      // by silent
}

// take makes a request the writer of an upload. A request that writes it is interrupted:
// its client has usually lost its connection, which this side cannot see. take returns
// once that request has ended and has recorded what it received. The caller must call end.
func (r *requests) take(w http.ResponseWriter, req *http.Request, u *upload) (*session, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	s := &session{
		u: u, ctx: ctx, cancel: cancel, w: w, conn: http.NewResponseController(w), done: make(chan struct{}),
	}
	s.unwatch = context.AfterFunc(r.ctx, func() { s.interrupt(errClosing) }) //nolint:contextcheck // the receiver's
	for {
		before, err := s.enter()
		if err != nil {
			s.leave()
			return nil, err
		}
		if before == nil {
			return s, nil
		}
		before.interrupt(errTakenOver)
		select {
		case <-before.done:
		case <-ctx.Done():
			err := context.Cause(ctx)
			s.leave()
			return nil, err
		}
	}
}

// enter makes s the writer, or returns the present writer.
func (s *session) enter() (before *session, err error) {
	f := s.u.file
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.gone || (s.u.number >= 0 && f.lanes[s.u.number] != s.u):
		return nil, errUnknown
	case s.u.writer != nil:
		return s.u.writer, nil
	}
	if err := f.hold(); err != nil {
		return nil, err
	}
	s.u.writer = s
	return nil, nil
}

// leave ends the session's waits for Close and for its context.
func (s *session) leave() {
	s.unwatch()
	s.cancel(nil)
}

// end lets the next request have the upload.
func (s *session) end() {
	s.leave()
	f := s.u.file
	f.mu.Lock()
	s.u.writer = nil
	f.mu.Unlock()
	f.release()
	close(s.done)
}

// interrupt ends the reading of the request's body, and its waits. Only reading is ended by
// a deadline: net/http cancels the context of all requests of a connection when a deadline
// ends a read, and the connection may serve another request soon.
func (s *session) interrupt(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interrupted = true
	s.cancel(cause)
	if s.reading {
		// Not all writers of responses can: then the body has to end by itself.
		_ = s.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// startReading must be called before the body is read.
func (s *session) startReading() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupted {
		return context.Cause(s.ctx)
	}
	s.reading = true
	return nil
}

// stopReading must be called after the body has been read: the server reads on, to notice
// that the client closes the connection. If the request was interrupted at the body's end,
// the connection serves no further one.
func (s *session) stopReading() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading = false
	if s.interrupted {
		s.w.Header().Set("Connection", "close")
	}
	if s.interrupted || s.ended {
		_ = s.conn.SetReadDeadline(time.Time{})
	}
}

// bodyReader reads the body of a request, and ends if the client is silent for a time. A deadline of the connection
// would not do: HTTP/2 loses the body when it passes, also while the server is the one that waits, for its disk or its
// rate.
type bodyReader struct {
	*session

	body    io.Reader
	silence time.Duration
}

// Read is as io.Reader says.
func (r *bodyReader) Read(p []byte) (int, error) {
	r.await(clock.Now().Add(r.silence))
	defer r.await(time.Time{})
	if r.timer == nil {
		r.timer = time.AfterFunc(r.silence, r.silent)
	} else {
		r.timer.Reset(r.silence)
	}
	defer r.timer.Stop()
	return r.body.Read(p)
}

// await sets until.
func (s *session) await(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = until
}

// silent ends a Read whose client is silent.
func (s *session) silent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.until.IsZero() && !clock.Now().Before(s.until) { // it may be late, and another Read under way
		s.ended = true
		_ = s.conn.SetReadDeadline(time.Unix(1, 0))
	}
}
