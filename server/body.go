package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// smallBody is the largest body, in bytes, that is decoded however many others there are:
// claims, commands and the signs of life of a few tasks do not wait for large ones.
const smallBody = 4 << 10

// body is the body of a call.
type body struct {
	io.ReadCloser               // fails at the largest size
	rest          io.ReadCloser // the same without a limit
}

// limit bounds the body of a call. It reports false when it has answered a call that says
// itself that its body is too large.
func (s *Server) limit(w http.ResponseWriter, r *http.Request) bool {
	r.Body = &body{http.MaxBytesReader(w, r.Body, s.cfg.MaxBody), r.Body}
	if r.ContentLength > s.cfg.MaxBody {
		s.refuseBody(w, r, refusal(&http.MaxBytesError{Limit: s.cfg.MaxBody}))
		return false
	}
	return true
}

// withBody reads the body of a call into in, and calls do with it. No more bodies are in
// memory at a time than there is room for: others wait, for as long as a client may take
// to send one. tee sees what is read; it may be nil.
func (s *Server) withBody(w http.ResponseWriter, r *http.Request, in any, tee io.Writer, do func()) {
	release, err := s.reserve(r, s.largest(in))
	if err != nil {
		s.refuseBody(w, r, err)
		return
	}
	defer release()
	from := io.Reader(r.Body)
	if tee != nil {
		from = io.TeeReader(from, tee)
	}
	switch err := s.read(w, from, in); {
	case errors.Is(err, queue.ErrTooLarge):
		s.refuseBody(w, r, err)
	case err != nil:
		s.write(w, encoded(nil, err))
	default:
		do()
	}
}

// largest is how many bytes the body of a call may have: without a list it is one item.
func (s *Server) largest(in any) int64 {
	if wire.HasList(in) {
		return s.cfg.MaxBody
	}
	return min(s.cfg.MaxItem, s.cfg.MaxBody)
}

// reserve waits for room in memory for the body of a call, and returns what gives it back.
func (s *Server) reserve(r *http.Request, largest int64) (release func(), err error) {
	n := r.ContentLength
	switch {
	case n > largest:
		return nil, fmt.Errorf("%w: this call may have %d bytes, and has %d", queue.ErrTooLarge, largest, n)
	case n < 0: // it does not say
		n = largest
	case n <= smallBody:
		return func() {}, nil
	}
	ctx, stop := context.WithTimeout(r.Context(), s.cfg.Timeout)
	defer stop()
	cost := wire.Cost(n)
	if err := s.bodies.Acquire(ctx, cost); err != nil {
		return nil, fmt.Errorf("%w: clients send more at a time than the server has room for; "+
			"try again, or send less at a time", queue.ErrUnavailable)
	}
	return func() { s.bodies.Release(cost) }, nil
}

// read reads the body of a call.
func (s *Server) read(w http.ResponseWriter, from io.Reader, in any) error {
	rc := http.NewResponseController(w)
	s.hurry(rc.SetReadDeadline)
	largest := s.largest(in)
	limited := &io.LimitedReader{R: from, N: largest + 1}
	d := json.NewDecoder(wire.Bounded(limited, s.cfg.MaxItem))
	err := wire.Decode(d, in)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.Join(errors.New("something follows its value"), end)
		}
	}
	if limited.N == 0 {
		return fmt.Errorf("%w: this call may have %d bytes", queue.ErrTooLarge, largest)
	}
	if err != nil {
		return refusal(err)
	}
	_ = rc.SetReadDeadline(time.Time{}) // else it would end the call
	return nil
}

// dropMost is how many bytes of a body that was refused are read.
const dropMost = 256 << 20

// refuseBody answers a call whose body is not taken, and then reads what follows without
// keeping it: many clients read no answer before they have sent everything, and closing
// the connection earlier would reset it and lose the answer.
func (s *Server) refuseBody(w http.ResponseWriter, r *http.Request, err error) {
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // answer first; what is no connection has nothing to send
	w.Header().Set("Connection", "close")
	s.write(w, encoded(nil, err))
	_ = rc.Flush() // the client is gone if this fails
	s.hurry(rc.SetReadDeadline)
	if b, ok := r.Body.(*body); ok {
		_, _ = io.CopyN(io.Discard, b.rest, dropMost)
	}
}

// refusal is the error of a body that could not be read.
func refusal(err error) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("%w: a call may have %d bytes: send less at a time", queue.ErrTooLarge, large.Limit)
	}
	if errors.Is(err, queue.ErrTooLarge) {
		return err
	}
	return fmt.Errorf("%w: the body of the call: %w", queue.ErrInvalid, err)
}
