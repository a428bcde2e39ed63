package stint

import (
	"context"
	"time"

	"github.com/stintgo/stint/internal/bucket"
)

// wait queues at tier p for n tokens, or for most tokens if other callers of the tier wait,
// and returns the number that it got. It does so on behalf of key unless that is empty. It
// gives up when ctx ends, or when closed is closed (by the close of a stream). If the tokens
// would come after the deadline of ctx, it returns an error at once; except for a stream,
// which makes progress with each chunk.
//
// All waiting goroutines receive from the one timer, and the receiver updates the queue.
// It is mostly the first waiter, which has waited longest and finds its own tokens due, so
// a wake takes one switch of goroutines. A function called by the timer would need a
// goroutine of its own, and on a busy processor each switch may take 10 ms.
func (l *limiter) wait(
	ctx context.Context, closed <-chan struct{}, key string, p Priority, n, most int64,
) (got int64, err error) {
	deadline, ok := ctx.Deadline()
	if ok = ok && closed == nil; !ok {
		deadline = time.Time{}
	}
	e, got, err := l.queue(key, p, n, most, deadline)
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
		l.giveUp(key, e)
		l.entries.Put(e)
		return 0, err
	}
}

// queue queues an entry and returns it, with the number of tokens that it asks for. It
// refuses tokens that would come after the deadline, unless that is zero.
func (l *limiter) queue(
	key string, p Priority, n, most int64, deadline time.Time,
) (e *bucket.Entry, asked int64, err error) {
	e = l.entry()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !deadline.IsZero() && l.shared == nil {
		if delay := l.delay(key, p, n); now().Add(delay).After(deadline) {
			l.entries.Put(e)
			return nil, 0, &DeadlineError{Wait: delay}
		}
	}
	if l.bucket.Queued(p.index()) > 0 || key != "" && l.keys.Queued(key, p.index()) > 0 {
		n = most
	}
	if l.timer == nil {
		l.timer = time.NewTimer(0)
		l.timer.Stop()
	}
	at := l.now()
	if key != "" {
		l.keys.Push(at, key, e, p.index(), n)
	} else {
		l.bucket.Push(at, e, p.index(), n)
	}
	l.settle(at)
	return e, n, nil
}

// delay returns the least time until a caller that arrives now gets n tokens. It needs
// the lock.
func (l *limiter) delay(key string, p Priority, n int64) time.Duration {
	at := l.now()
	var due int64
	if key != "" {
		due = l.keys.Earliest(at, key, p.index(), n)
	} else {
		due = l.bucket.Earliest(at, p.index(), n)
	}
	l.settle(at)
	return time.Duration(due - at)
}

// vacant returns the least time until a try for n tokens may succeed.
func (l *limiter) vacant(key string, n int64) time.Duration {
	if n < 0 {
		return Never
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.now()
	var due int64
	if key != "" {
		due = l.keys.VacantAt(at, key, n)
	} else {
		due = l.bucket.VacantAt(at, n)
	}
	l.settle(at)
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

// entry returns an unused entry. Its channel has room for the one message that is sent
// for each use, so that no sender waits for a receiver.
func (l *limiter) entry() *bucket.Entry {
	if e, ok := l.entries.Get().(*bucket.Entry); ok {
		return e
	}
	return &bucket.Entry{Ready: make(chan struct{}, 1)}
}

// advance grants the entries that are due. It may be called late, or after another call
// that granted them: which entries are due depends only on the time.
func (l *limiter) advance() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = 0
	l.catchUp()
}

// catchUp grants the entries that are due by now, and returns the time. It needs the lock.
func (l *limiter) catchUp() (at int64) {
	at = l.now()
	l.bucket.Advance(at)
	l.keys.Advance(at)
	l.settle(at)
	return at
}

// giveUp removes e from the queue. If e was granted at the same moment, giveUp puts its
// tokens back, because its caller will not use them.
func (l *limiter) giveUp(key string, e *bucket.Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.now()
	if key != "" {
		l.keys.Remove(at, key, e)
	} else {
		l.bucket.Remove(at, e)
	}
	l.settle(at)
	select {
	case <-e.Ready:
	default:
	}
}

// settle wakes the goroutines of granted entries, and sets the timer for the next time at
// which something is due. It ends every operation on the queue. It needs the lock, and
// the time of the operation.
func (l *limiter) settle(at int64) {
	for e := l.keys.Granted(at); e != nil; e = l.keys.Granted(at) {
		e.Ready <- struct{}{}
	}
	if l.shared != nil {
		l.shared.want(&l.bucket)
	}
	l.sweeps.plan()
	due, waiting := l.next()
	switch {
	case !waiting:
		l.disarm()
	case due != l.due:
		l.due = due
		l.timer.Reset(time.Duration(due - l.now()))
	}
}

// next returns when something is due, and whether an entry waits. It needs the lock.
func (l *limiter) next() (due int64, waiting bool) {
	due, waiting = l.bucket.Next()
	if of, waits := l.keys.Next(); waits && (!waiting || of < due) {
		return of, true
	}
	return due, waiting
}

func (l *limiter) disarm() {
	if l.due != 0 {
		l.timer.Stop()
		l.due = 0
	}
}
