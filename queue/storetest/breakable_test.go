package storetest_test

import (
	"context"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
)

// breakable is a store whose changing calls can be made to fail. Every other one
// that fails has been done all the same.
type breakable struct {
	queue.Store

	mu    sync.Mutex // guards all below
	left  int        // calls until one fails, and all that come after it; 0: none does
	calls int
}

// breaks has the n-th call from now on fail, and all that come after it.
func (b *breakable) breaks(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = n
}

// next says what is to become of a call.
func (b *breakable) next() (fails, done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if fails = b.left == 1; !fails {
		b.left = max(b.left-1, 0)
	}
	return fails, !fails || b.calls%2 != 0
}

func (b *breakable) do(call func() error) (err error) {
	fails, done := b.next()
	if done {
		err = call()
	}
	if fails {
		return queue.ErrUnavailable
	}
	return err
}

func (b *breakable) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) (r []queue.Receipt, err error) {
	err = b.do(func() error { r, err = b.Store.Submit(ctx, now, tasks); return err })
	return r, err
}

func (b *breakable) Claim(ctx context.Context, now time.Time, c queue.Claim) (claimed queue.Claimed, err error) {
	if err = b.do(func() error { claimed, err = b.Store.Claim(ctx, now, c); return err }); err != nil {
		return queue.Claimed{}, err
	}
	return claimed, nil
}

func (b *breakable) Settle(ctx context.Context, now time.Time, o []queue.Outcome) (answers []error, err error) {
	err = b.do(func() error { answers, err = b.Store.Settle(ctx, now, o); return err })
	return answers, err
}

func (b *breakable) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) (answers []queue.Answer, err error) {
	err = b.do(func() error { answers, err = b.Store.Heartbeat(ctx, now, w, heartbeats); return err })
	return answers, err
}

func (b *breakable) Command(ctx context.Context, now time.Time, c queue.Command) (n int, err error) {
	err = b.do(func() error { n, err = b.Store.Command(ctx, now, c); return err })
	return n, err
}

func (b *breakable) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	return b.do(func() error { return b.Store.Configure(ctx, now, name, c) })
}

func (b *breakable) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	return b.do(func() error { return b.Store.PauseQueue(ctx, now, name, p) })
}

func (b *breakable) Maintain(ctx context.Context, now time.Time, limit int) (next time.Time, err error) {
	err = b.do(func() error { next, err = b.Store.Maintain(ctx, now, limit); return err })
	return next, err
}
