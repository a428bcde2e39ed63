package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
)

// caller makes the calls of a node at the node that leads: at its own store while this node leads,
// and over HTTP otherwise. It is safe for concurrent use.
type caller struct {
	state    *nodeState
	remote   follower         // the store of the node that leads
	clock    func() time.Time // of this host
	patience time.Duration
}

// route makes a call at the node that leads. While no node can answer, it makes the call
// again, up to the patience of the node. A remote store does that by itself. The leader takes the
// age of a call for a difference of the clocks, so the time of an attempt is when it is made.
func route[T any](
	ctx context.Context, c *caller, now time.Time, call func(s queue.Store, now time.Time) (T, error),
) (answer T, err error) {
	var zero T
	begun, at := clock.Now(), now
	var patience <-chan time.Time
	for pause := againFirst; ; pause = min(2*pause, againLast) {
		v := c.state.view()
		store, remote := c.storeOf(v)
		answer, err = call(store, at)
		switch {
		case err != nil && c.state.ended() != nil:
			return zero, c.state.ended()
		case remote || ctx.Err() != nil:
			return answer, err
		case !errors.Is(err, queue.ErrUnavailable) && !errors.Is(err, queue.ErrClosed):
			return answer, err
		}
		if patience == nil {
			timer := time.NewTimer(c.patience)
			defer timer.Stop()
			patience = timer.C
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-v.life.Done(): // the call goes to the next leader
			again.Stop()
		case <-patience:
			again.Stop()
			if errors.Is(err, queue.ErrClosed) {
				err = fmt.Errorf("%w: %w", queue.ErrUnavailable, errNoLeader)
			}
			return zero, err
		case <-ctx.Done():
			again.Stop()
			return zero, fmt.Errorf("%w: %v", context.Cause(ctx), err) //nolint:errorlint // the call has ended for the cause
		}
		at = now.Add(clock.Now().Sub(begun))
	}
}

// routeError is route for calls that return only an error.
func routeError(ctx context.Context, c *caller, now time.Time, call func(s queue.Store, now time.Time) error) error {
	_, err := route(ctx, c, now, func(s queue.Store, now time.Time) (struct{}, error) { return struct{}{}, call(s, now) })
	return err
}

// storeOf returns the store for the calls of this node, and whether the store converts times and
// makes failed calls again by itself. While this node leads, that is its own store, unless the
// clock of this host differs from that of the database server at present.
func (c *caller) storeOf(v *view) (store queue.Store, remote bool) {
	if v.leads() && v.term.agrees(c.clock()) {
		return v.term.calls, false
	}
	return c.remote, true
}

// watch is Watch of [queue.Store]. It ends with [queue.ErrUnavailable] when the leader
// changes: events until the next call of Watch are lost.
func (c *caller) watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	if c.state.ended() != nil {
		return c.state.ended()
	}
	v := c.state.view()
	bound, cancel := context.WithCancel(ctx)
	defer cancel()
	defer v.atEnd(cancel)()
	store, _ := c.storeOf(v)
	err := store.Watch(bound, begun, fn)
	switch {
	case c.state.ended() != nil:
		return c.state.ended()
	case v.life.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("%w: the leader has changed: watch again", queue.ErrUnavailable)
	}
	return err
}

// listen is Listen of [queue.Store]. A change of the leader is a signal, because those on the
// way are lost.
func (c *caller) listen(name string) (<-chan struct{}, func()) {
	ready, ended := make(chan struct{}, 1), make(chan struct{})
	signal := func() {
		select {
		case ready <- struct{}{}:
		default:
		}
	}
	var stopped sync.WaitGroup
	stopped.Go(func() {
		for c.state.life.Err() == nil {
			v := c.state.view()
			store := queue.Store(c.remote)
			if v.leads() {
				store = v.term.calls
			}
			from, stop := store.Listen(name)
			signal()
			for v.life.Err() == nil {
				select {
				case <-from:
					signal()
				case <-v.life.Done():
				case <-ended:
					stop()
					return
				}
			}
			stop()
		}
	})
	return ready, sync.OnceFunc(func() {
		close(ended)
		stopped.Wait()
	})
}

// follower is the store of the node that leads.
type follower struct {
	*httpstore.Store
	submits *submits
}

// newFollower returns a store that gives up a call after about patience; events is how many events a
// watcher may be behind.
func newFollower(state *nodeState, patience time.Duration, events int) (follower, error) {
	s, err := httpstore.Open("http://leader", httpstore.Config{
		Patience: patience, WatchBuffer: events, Transport: toLeader{state}, Name: "the node that leads",
	})
	if err != nil {
		return follower{}, err
	}
	return follower{s, &submits{send: s.Submit, patience: patience}}, nil
}

// Submit is as [queue.Store] says.
func (f follower) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	return f.submits.submit(ctx, now, tasks)
}
