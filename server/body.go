package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"github.com/stintgo/stint/csync"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// smallBody and smallPacked are the largest bodies, in bytes, that are decoded without a
// reservation of memory: claims, commands and heartbeats of a few tasks do not wait for large
// bodies. A packed body becomes about four times as many values as one in JSON.
const (
	smallBody   = 4 << 10
	smallPacked = 1 << 10
)

// body is the body of a call. Reading more than [Config.MaxBody] bytes of it fails.
type body struct {
	io.ReadCloser               // limited to Config.MaxBody
	rest          io.ReadCloser // without the limit
}

// bodies limits the bodies of calls, and the memory that they take together. It is safe for
// concurrent use.
type bodies struct {
	max, maxItem int64            // bytes
	timeout      time.Duration    // for a body to get memory
	memory       *csync.Semaphore // bytes for bodies during decoding and execution
	to           *responder
}

func newBodies(cfg *Config, to *responder) *bodies {
	const atOnce = 2 // calls of the largest size
	return &bodies{cfg.MaxBody, cfg.MaxItem, cfg.Timeout, csync.NewSemaphore(atOnce * wire.Cost(cfg.MaxBody)), to}
}

// limited bounds the bodies of calls to next. It answers those whose Content-Length is too large.
func (b *bodies) limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &body{http.MaxBytesReader(w, r.Body, b.max), r.Body}
		if r.ContentLength > b.max {
			b.refuse(w, r, refusal(&http.MaxBytesError{Limit: b.max}))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// decoded decodes the body of a call into in. It waits up to [Config.Timeout] until there is
// memory for the body, which the caller releases when the call is executed. What is read from
// the body is also written to tee, which may be nil. If the body is refused, decoded answers the
// call and returns false.
func (b *bodies) decoded(w http.ResponseWriter, r *http.Request, in any, tee io.Writer) (release func(), ok bool) {
	release, err := b.reserve(r, b.largest(in))
	if err != nil {
		b.refuse(w, r, err)
		return nil, false
	}
	from := io.Reader(r.Body)
	if tee != nil {
		from = io.TeeReader(from, tee)
	}
	if err = b.read(w, r, from, in); err == nil {
		return release, true
	}
	release()
	if errors.Is(err, queue.ErrTooLarge) {
		b.refuse(w, r, err)
	} else {
		b.to.write(w, encoded(nil, err))
	}
	return nil, false
}

// largest returns the limit for the body of a call, in bytes: a call without a list
// has at most one item.
func (b *bodies) largest(in any) int64 {
	if wire.HasList(in) {
		return b.max
	}
	return min(b.maxItem, b.max)
}

// reserve waits for memory for the body of a call, and returns the function that
// releases it.
func (b *bodies) reserve(r *http.Request, largest int64) (release func(), err error) {
	n := r.ContentLength
	switch {
	case n > largest:
		return nil, fmt.Errorf("%w: this call has %[3]d bytes, more than its limit of %[2]d", queue.ErrTooLarge, largest, n)
	case n < 0: // unknown length
		n = largest
	case n <= smallPacked || n <= smallBody && encodingOf(r) == inJSON:
		return func() {}, nil
	}
	cost := wire.Cost(n)
	ctx, stop := context.WithTimeout(r.Context(), b.timeout)
	defer stop()
	if err := b.memory.Acquire(ctx, cost); err != nil {
		return nil, fmt.Errorf("%w: the server has no memory left for the bodies of calls; "+
			"try again, or send fewer items in a call", queue.ErrUnavailable)
	}
	return func() { b.memory.Release(cost) }, nil
}

// read decodes the body of a call.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, from io.Reader, in any) error {
	rc := http.NewResponseController(w)
	b.to.setDeadline(rc.SetReadDeadline)
	largest := b.largest(in)
	limited := &io.LimitedReader{R: from, N: largest + 1}
	var err error
	if encodingOf(r) == packed {
		err = b.unpack(limited, r.ContentLength, in)
	} else {
		err = b.decode(limited, in)
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

// decode decodes a body in JSON.
func (b *bodies) decode(from io.Reader, in any) error {
	d := json.NewDecoder(wire.Bounded(from, b.maxItem))
	if err := wire.Decode(d, in); err != nil {
		return err
	}
	if _, end := d.Token(); !errors.Is(end, io.EOF) {
		return errors.Join(errors.New("there is data after the JSON value"), end)
	}
	return nil
}

// unpack decodes a body that is packed, of a length in bytes if that is known.
func (b *bodies) unpack(from io.Reader, length int64, in any) error {
	var body bytes.Buffer
	if length >= 0 && length <= b.max { // otherwise it grows to up to twice the length
		body.Grow(int(length) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(from); err != nil {
		return err
	}
	return wire.Unpack(body.Bytes(), in, b.maxItem)
}

// dropMost is how many bytes of a refused body are read and discarded at most.
const dropMost = 256 << 20

// refuse answers a call whose body is refused, and then reads and discards the
// rest of the body: many clients read the answer only after they have sent everything,
// and closing the connection earlier would reset it and lose the answer.
func (b *bodies) refuse(w http.ResponseWriter, r *http.Request, err error) {
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // so that the answer can precede the rest of the body
	w.Header().Set("Connection", "close")
	b.to.write(w, encoded(nil, err))
	_ = rc.Flush() // fails only if the client is gone
	b.to.setDeadline(rc.SetReadDeadline)
	if whole, ok := r.Body.(*body); ok {
		_, _ = io.CopyN(io.Discard, whole.rest, dropMost)
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
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && t.Type == reflect.TypeFor[[]byte]() {
		err = fmt.Errorf("%s is bytes, a string in base64, and not %s", t.Field, t.Value)
	}
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		err = fmt.Errorf("bytes are a string in base64: %w", err)
	}
	return fmt.Errorf("%w: the body of the call: %w", queue.ErrInvalid, err)
}
