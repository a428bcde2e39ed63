package stint

import (
	"context"
	"io"
	"io/fs"
	"sync"
)

// largestChunk bounds, in bytes, what a stream pays for at once. At high rates
// more would only make callers behind it wait longer.
const largestChunk = 1 << 20

// setChunks sets how many bytes a stream pays for at once: a hundredth of a
// second's worth, so that the flow is smooth and a stream of a higher tier
// waits no longer than that, but no more than the buckets can hold. It needs the lock.
func (l *limiter) setChunks() {
	rate, capacity := l.config.own(l.rate)
	if l.shared != nil {
		usage := l.shared.bucket.Usage()
		rate, capacity = min(rate, usage.Rate), min(capacity, usage.Capacity)
	}
	l.chunk.Store(chunk(rate, capacity))
	keyRate, keyCapacity := l.keys.Rate()
	l.keyChunk.Store(chunk(min(rate, keyRate), min(capacity, keyCapacity)))
}

func chunk(rate float64, capacity int64) int64 {
	return max(min(int64(rate/100), capacity, largestChunk), 1) // 1 as well if nothing is known of the bucket
}

// errStreamClosed is the error of calls on a closed stream. It is the same error as
// that of a closed [os.File].
var errStreamClosed = fs.ErrClosed

// stream is the part that a [Reader] and a [Writer] have in common: it pays the limiter,
// and its close interrupts a wait for tokens.
type stream struct {
	// A stream belongs to the operation that ctx stands for, and the methods
	// of package io take no context.
	ctx     context.Context //nolint:containedctx // see above
	limiter Limiter
	credit  int64 // bytes that are paid for in advance
	closed  chan struct{}
	once    sync.Once
}

func newStream(ctx context.Context, l Limiter) *stream {
	return &stream{ctx: ctx, limiter: l.At(l.tierFor(ctx)), closed: make(chan struct{})}
}

// pay waits for n bytes' worth of tokens. It returns at once with an error when
// the stream is closed or its context ends.
//
// The streams of a tier take turns. While others wait, a stream pays for a whole chunk at its
// turn and keeps the surplus as credit for the bytes that follow. So the streams of a tier get
// the same number of bytes, whatever the sizes of their reads and writes.
func (s *stream) pay(n int) error {
	if err := s.usable(); err != nil {
		return err
	}
	missing := int64(n) - s.credit
	if missing <= 0 {
		s.credit = -missing
		return nil
	}
	l := s.limiter.c
	if done, err := l.enter(s.ctx, s.limiter.key, missing); done {
		if err == nil {
			s.credit = 0
		}
		return err
	}
	got, err := l.wait(s.ctx, s.closed, s.limiter.key, s.limiter.tier, missing, max(missing, s.largest()))
	if err == nil {
		s.credit = got - missing
	}
	return err
}

// chunk returns how many of n bytes to pay for at once.
func (s *stream) chunk(n int) int {
	return int(min(int64(n), s.largest()))
}

// largest returns the maximum number of bytes to pay for at once.
func (s *stream) largest() int64 {
	if s.limiter.key != "" {
		return s.limiter.c.keyChunk.Load()
	}
	return s.limiter.c.chunk.Load()
}

// usable returns an error if the stream has been closed or its context has ended.
func (s *stream) usable() error {
	if s.isClosed() {
		return errStreamClosed
	}
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return nil
}

func (s *stream) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// close wakes calls that wait to pay, and closes the wrapped reader or writer if it
// is an [io.Closer]. Only the first call does anything.
func (s *stream) close(wrapped any) (err error) {
	s.once.Do(func() {
		close(s.closed)
		if c, ok := wrapped.(io.Closer); ok {
			err = c.Close()
		}
	})
	return err
}
