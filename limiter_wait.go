package stint

import (
	"context"
	"time"

	"github.com/stintgo/stint/internal/bucket"
)

// wait queues for n tokens at tier p. It gives up when ctx ends, or when closed
// is closed, as a stream is.
func (l *Limiter) wait(ctx context.Context, closed <-chan struct{}, p Priority, n int64) error {
	e := l.entry()
	l.mu.Lock()
	l.bucket.Push(l.now(), e, p.index(), n)
	l.settle()
	l.mu.Unlock()

	var err error
	select {
	case <-e.Ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-closed:
		err = errStreamClosed
	}
	if err != nil {
		l.giveUp(e)
	}
	l.entries.Put(e)
	return err
}

// entry returns an entry that nobody uses. Its channel has room for the one
// message that it is sent each time, so that no sender waits for a receiver.
func (l *Limiter) entry() *bucket.Entry {
	if e, ok := l.entries.Get().(*bucket.Entry); ok {
		return e
	}
	return &bucket.Entry{Ready: make(chan struct{}, 1)}
}

// giveUp takes e out of the queue. If it was granted in the same moment, its
// tokens go back, as its caller will not use them.
func (l *Limiter) giveUp(e *bucket.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucket.Remove(l.now(), e)
	l.settle()
	select {
	case <-e.Ready:
	default:
	}
}

// wake is what the timer calls. It may come late, or when it is no longer
// needed: what is due is found out from the time.
func (l *Limiter) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = 0
	l.bucket.Advance(l.now())
	l.settle()
}

// settle wakes those who have been granted, and sets the timer for the next
// time at which something will be due. It ends every operation on the queue.
// It needs the lock.
func (l *Limiter) settle() {
	for e := l.bucket.Granted(); e != nil; e = l.bucket.Granted() {
		e.Ready <- struct{}{}
	}
	due, waiting := l.bucket.Next()
	switch {
	case !waiting:
		l.disarm()
	case due != l.due:
		l.arm(due)
	}
}

func (l *Limiter) arm(due int64) {
	l.due = due
	after := time.Duration(due - l.now())
	if l.timer == nil {
		l.timer = time.AfterFunc(after, l.wake)
		return
	}
	l.timer.Reset(after)
}

func (l *Limiter) disarm() {
	if l.due != 0 {
		l.timer.Stop()
		l.due = 0
	}
}
