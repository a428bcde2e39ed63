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

// smallBody is the largest body, in bytes, that is decoded without a reservation of
// memory: claims, commands and heartbeats of a few tasks do not wait for large bodies.
const smallBody = 4 << 10

// body is the body of a call. Reading it fails at [Config.MaxBody].
type body struct {
	io.ReadCloser               // limited to Config.MaxBody
	rest          io.ReadCloser // without the limit
}

// limit bounds the body of a call. If the Content-Length is too large, it answers the
// call and returns false.
func (s *Server) limit(w http.ResponseWriter, r *http.Request) bool {
	r.Body = &body{http.MaxBytesReader(w, r.Body, s.cfg.MaxBody), r.Body}
	if r.ContentLength > s.cfg.MaxBody {
		s.refuseBody(w, r, refusal(&http.MaxBytesError{Limit: s.cfg.MaxBody}))
		return false
	}
	return true
}

// withBody decodes the body of a call into in, and then calls do. It waits up to
// [Config.Timeout] until there is memory for the body. What is read from the body is also
// written to tee, which may be nil.
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
		s.to.write(w, encoded(nil, err))
	default:
		do()
	}
}

// largest returns the limit for the body of a call, in bytes: a call without a list
// has at most one item.
func (s *Server) largest(in any) int64 {
	if wire.HasList(in) {
		return s.cfg.MaxBody
	}
	return min(s.cfg.MaxItem, s.cfg.MaxBody)
}

// reserve waits for memory for the body of a call, and returns the function that
// releases it.
func (s *Server) reserve(r *http.Request, largest int64) (release func(), err error) {
	n := r.ContentLength
	switch {
	case n > largest:
		return nil, fmt.Errorf("%w: this call has %[3]d bytes, more than its limit of %[2]d", queue.ErrTooLarge, largest, n)
	case n < 0: // unknown length
		n = largest
	case n <= smallBody:
		return func() {}, nil
	}
	ctx, stop := context.WithTimeout(r.Context(), s.cfg.Timeout)
	defer stop()
	cost := wire.Cost(n)
	if err := s.bodies.Acquire(ctx, cost); err != nil {
		return nil, fmt.Errorf("%w: the server has no memory left for the bodies of calls; "+
			"try again, or send fewer items in a call", queue.ErrUnavailable)
	}
	return func() { s.bodies.Release(cost) }, nil
}

// read decodes the body of a call.
func (s *Server) read(w http.ResponseWriter, from io.Reader, in any) error {
	rc := http.NewResponseController(w)
	s.to.setDeadline(rc.SetReadDeadline)
	largest := s.largest(in)
	limited := &io.LimitedReader{R: from, N: largest + 1}
	d := json.NewDecoder(wire.Bounded(limited, s.cfg.MaxItem))
	err := wire.Decode(d, in)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.Join(errors.New("there is data after the JSON value"), end)
		}
	}
	if limited.N == 0 {
		return fmt.Errorf("%w: this call has more than its limit of %d bytes", queue.ErrTooLarge, largest)
	}
	if err != nil {
		return refusal(err)
	}
	_ = rc.SetReadDeadline(time.Time{}) // the deadline would otherwise end the call
	return nil
}

// dropMost is how many bytes of a refused body are read and discarded.
const dropMost = 256 << 20

// refuseBody answers a call whose body is refused, and then reads and discards the
// rest of the body: many clients read the answer only after they have sent everything,
// and closing the connection earlier would reset it and lose the answer.
func (s *Server) refuseBody(w http.ResponseWriter, r *http.Request, err error) {
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // so that the answer can precede the rest of the body
	w.Header().Set("Connection", "close")
	s.to.write(w, encoded(nil, err))
	_ = rc.Flush() // fails only if the client is gone
	s.to.setDeadline(rc.SetReadDeadline)
	if b, ok := r.Body.(*body); ok {
		_, _ = io.CopyN(io.Discard, b.rest, dropMost)
	}
}

// refusal returns the error for a body that could not be read.
func refusal(err error) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("%w: a call has at most %d bytes; send fewer items in a call", queue.ErrTooLarge, large.Limit)
	}
	if errors.Is(err, queue.ErrTooLarge) {
		return err
	}
	return fmt.Errorf("%w: the body of the call: %w", queue.ErrInvalid, err)
}
