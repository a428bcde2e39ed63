package stint

import (
	"context"
	"time"

	"github.com/stintgo/stint/internal/bucket"
)

// wait queues for n tokens at tier p, or for most if others of the tier wait, and returns
// how many it got. It gives up when ctx ends, or when closed is closed, as a stream is.
// What the deadline of ctx cannot meet is refused at once, but for that of a stream,
// which gets on with each chunk.
//
// All who wait listen to the one timer, and whoever hears it looks after the
// queue. That is mostly the first in line, who has listened for longest and
// finds its own tokens due, so a wake takes one switch of goroutines. A
// function called by the timer would need a goroutine of its own, and on a busy
// processor each switch may take 10 ms.
func (l *limiter) wait(ctx context.Context, closed <-chan struct{}, p Priority, n, most int64) (got int64, err error) {
	deadline, ok := ctx.Deadline()
	if ok = ok && closed == nil; !ok {
		deadline = time.Time{}
	}
	e, got, err := l.queue(p, n, most, deadline)
	if err != nil {
		return 0, err
	}
	for {
		select {
		case <-e.Ready:
			err = e.Err
			l.entries.Put(e)
			return got, err
		case <-l.timer.C:
			l.advance()
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-closed:
			err = errStreamClosed
		}
		l.giveUp(e)
		l.entries.Put(e)
		return 0, err
	}
}

// queue puts an entry into the queue, and returns for how many tokens, unless they come
// after a deadline that is not zero.
func (l *limiter) queue(p Priority, n, most int64, deadline time.Time) (e *bucket.Entry, asked int64, err error) {
	e = l.entry()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !deadline.IsZero() && l.shared == nil {
		if delay := l.delay(p, n); l.start.Add(time.Duration(l.now()) + delay).After(deadline) {
			l.entries.Put(e)
			return nil, 0, &DeadlineError{Wait: delay}
		}
	}
	if l.bucket.Queued(p.index()) > 0 {
		n = most
	}
	if l.timer == nil {
		l.timer = time.NewTimer(0)
		l.timer.Stop()
	}
	l.bucket.Push(l.now(), e, p.index(), n)
	l.settle()
	return e, n, nil
}

// delay returns how long n tokens take for a caller who comes now, at the least. It needs
// the lock.
func (l *limiter) delay(p Priority, n int64) time.Duration {
	at := l.now()
	delay := time.Duration(l.bucket.Earliest(at, p.index(), n) - at)
	l.settle()
	return delay
}

// vacant returns how long it takes at the least until a try for n tokens may succeed.
func (l *limiter) vacant(n int64) time.Duration {
	if n < 0 {
		return Never
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.now()
	due := l.bucket.VacantAt(at, n)
	l.settle()
	after := Never
	if due != bucket.Never {
		after = time.Duration(max(due-at, 1))
	}
	if l.shared != nil {
		usage := l.shared.bucket.Usage()
		after = max(after, usage.vacant(n))
	}
	return after
}

// entry returns an entry that nobody uses. Its channel has room for the one
// message that it is sent each time, so that no sender waits for a receiver.
func (l *limiter) entry() *bucket.Entry {
	if e, ok := l.entries.Get().(*bucket.Entry); ok {
		return e
	}
	return &bucket.Entry{Ready: make(chan struct{}, 1)}
}

// advance does what is due. It may come late, or when another has done it: what
// is due is found out from the time.
func (l *limiter) advance() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = 0
	l.bucket.Advance(l.now())
	l.settle()
}

// giveUp takes e out of the queue. If it was granted in the same moment, its
// tokens go back, as its caller will not use them.
func (l *limiter) giveUp(e *bucket.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucket.Remove(l.now(), e)
	l.settle()
	select {
	case <-e.Ready:
	default:
	}
}

// settle wakes those who have been granted, and sets the timer for the next
// time at which something will be due. It ends every operation on the queue.
// It needs the lock.
func (l *limiter) settle() {
	for e := l.bucket.Granted(); e != nil; e = l.bucket.Granted() {
		e.Ready <- struct{}{}
	}
	if l.shared != nil {
		l.shared.tell(&l.bucket)
	}
	due, waiting := l.bucket.Next()
	switch {
	case !waiting:
		l.disarm()
	case due != l.due:
		l.due = due
		l.timer.Reset(time.Duration(due - l.now()))
	}
}

func (l *limiter) disarm() {
	if l.due != 0 {
		l.timer.Stop()
		l.due = 0
	}
}
