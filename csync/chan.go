package csync

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
)

// ErrClosed is the error of a send on a closed channel, and of a receive from a
// channel that is closed and empty.
var ErrClosed = errors.New("csync: channel is closed")

// Chan is a channel that any side may close, any number of times. A Send on a closed
// channel, or one that waits when the channel is closed, returns [ErrClosed] instead
// of panicking; buffered values can still be received. If Send returns nil, its value
// is received or in the buffer: no value is lost when a context ends or the channel is
// closed. Values arrive in the order in which they were sent.
//
// With a capacity of 0, a Send returns when a receiver has the value. The zero
// value is an open channel with a capacity of 0; [NewChan] makes others. All
// methods may be called from many goroutines.
//
// A Chan cannot be a case of a select statement. The contexts and the Try methods
// replace a select of one channel with a timeout or a default. To wait for the first
// of several channels, use Go's own.
type Chan[T any] struct {
	mu        sync.Mutex // guards all; taken last, never held while waiting
	buffer    []T        // a ring: its capacity is the channel's
	head, len int        // where in buffer the oldest value is, and how many there are
	closed    bool
	senders   queue[parcel[T]] // wait only while the buffer is full
	receivers queue[parcel[T]] // wait only while the buffer is empty and no call sends
}

// parcel is the value that a blocked call sends or receives, and its error.
type parcel[T any] struct {
	value T
	err   error // ErrClosed, if the channel was closed meanwhile
}

// NewChan returns an open channel that holds up to capacity values that have
// not been received yet. It panics if capacity is negative.
func NewChan[T any](capacity int) *Chan[T] {
	if capacity < 0 {
		panic(fmt.Sprintf("csync: a channel with a capacity of %d; use 0 or more", capacity))
	}
	return &Chan[T]{buffer: make([]T, capacity)}
}

// Send sends v, and waits until there is room for it (with a capacity of 0: a
// receiver) or ctx ends. In that case, also if ctx had ended before the call, it
// returns [context.Cause] of ctx, and v is not sent. If the channel is closed,
// before or while Send waits, it returns [ErrClosed], and v is not sent.
func (c *Chan[T]) Send(ctx context.Context, v T) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	done := ctx.Done()
	c.mu.Lock()
	receiver, ok, err := c.putLocked(v)
	if ok || err != nil {
		c.mu.Unlock()
		receiver.wake()
		return err
	}
	w := c.senders.push(done, parcel[T]{value: v})
	c.mu.Unlock()
	_, err = c.await(ctx, &c.senders, w)
	return err
}

// TrySend sends v if that is possible at once, and reports whether it did. If the
// channel is closed it returns [ErrClosed]. It never blocks.
func (c *Chan[T]) TrySend(v T) (bool, error) {
	c.mu.Lock()
	receiver, ok, err := c.putLocked(v)
	c.mu.Unlock()
	receiver.wake()
	return ok, err
}

// Receive returns the oldest value, and waits until there is one or ctx ends. In
// that case, also if ctx had ended before the call, it returns [context.Cause]
// of ctx. If the channel is empty and closed, before or while Receive waits, it
// returns [ErrClosed]. A value that was handed over before ctx ended is returned.
func (c *Chan[T]) Receive(ctx context.Context) (T, error) {
	if ctx.Err() != nil {
		var none T
		return none, context.Cause(ctx)
	}
	done := ctx.Done()
	c.mu.Lock()
	v, sender, ok, err := c.takeLocked()
	if ok || err != nil {
		c.mu.Unlock()
		sender.wake()
		return v, err
	}
	w := c.receivers.push(done, parcel[T]{})
	c.mu.Unlock()
	return c.await(ctx, &c.receivers, w)
}

// TryReceive returns the oldest value if there is one, and reports whether there
// is. If the channel is empty and closed it returns [ErrClosed]. It never blocks.
func (c *Chan[T]) TryReceive() (v T, ok bool, err error) {
	c.mu.Lock()
	v, sender, ok, err := c.takeLocked()
	c.mu.Unlock()
	sender.wake()
	return v, ok, err
}

// Close closes the channel. Calls that wait to send or to receive get
// [ErrClosed]. Closing a closed channel changes nothing.
func (c *Chan[T]) Close() {
	c.mu.Lock()
	c.closed = true
	senders, receivers := c.closeLocked(&c.senders), c.closeLocked(&c.receivers)
	c.mu.Unlock()
	senders.wake()
	receivers.wake()
}

// All yields the values as they arrive, until the channel is closed and empty or ctx
// ends; ctx.Err says which. A loop over it may be left at any time, and shares the
// values with other receivers.
func (c *Chan[T]) All(ctx context.Context) iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			v, err := c.Receive(ctx)
			if err != nil || !yield(v) {
				return
			}
		}
	}
}

// Len returns how many values are in the buffer at the moment.
func (c *Chan[T]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.len
}

// Cap returns the capacity.
func (c *Chan[T]) Cap() int { return len(c.buffer) }

// putLocked sends v to a waiting receiver, which the caller must wake, or to the
// buffer. If neither is possible, it reports false.
func (c *Chan[T]) putLocked(v T) (receiver *waiter[parcel[T]], ok bool, err error) {
	switch {
	case c.closed:
		return nil, false, ErrClosed
	case c.receivers.head() != nil:
		receiver = c.receivers.grant(1)
		receiver.value.value = v
		return receiver, true, nil
	case c.len < len(c.buffer):
		c.enqueue(v)
		return nil, true, nil
	}
	return nil, false, nil
}

// takeLocked receives the oldest value, from the buffer or from a waiting sender. If
// there is none, it reports false. If it returns a sender, the caller must wake it.
func (c *Chan[T]) takeLocked() (v T, sender *waiter[parcel[T]], ok bool, err error) {
	switch {
	case c.len > 0:
		v = c.dequeue()
		if c.senders.head() != nil {
			sender = c.senders.grant(1)
			c.enqueue(sender.value.value)
		}
		return v, sender, true, nil
	case c.senders.head() != nil:
		sender = c.senders.grant(1)
		return sender.value.value, sender, true, nil
	case c.closed:
		return v, nil, false, ErrClosed
	}
	return v, nil, false, nil
}

// enqueue adds v to the buffer, which has room.
func (c *Chan[T]) enqueue(v T) {
	c.buffer[(c.head+c.len)%len(c.buffer)] = v
	c.len++
}

// dequeue takes the oldest value out of the buffer, which is not empty.
func (c *Chan[T]) dequeue() T {
	var none T
	v := c.buffer[c.head]
	c.buffer[c.head] = none // the buffer must not keep alive what v points to
	c.head = (c.head + 1) % len(c.buffer)
	c.len--
	return v
}

// closeLocked removes all waiters of a queue with ErrClosed. The caller must wake them.
func (c *Chan[T]) closeLocked(q *queue[parcel[T]]) *waiter[parcel[T]] {
	q.dropEnded()
	for w := q.first; w != nil; w = w.next {
		w.value.err = ErrClosed
	}
	return q.grant(q.len)
}

// await waits in q until the call w is granted, and returns its value and error.
func (c *Chan[T]) await(ctx context.Context, q *queue[parcel[T]], w *waiter[parcel[T]]) (T, error) {
	granted := q.wait(ctx, &c.mu, w)
	got := w.value
	q.recycle(w)
	c.mu.Unlock()
	if !granted {
		return got.value, context.Cause(ctx)
	}
	return got.value, got.err
}
