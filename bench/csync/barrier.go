package csync

import (
	"context"
	"fmt"
	"sync"

	toolkit "github.com/stintgo/stint/csync"

	"github.com/stintgo/stint/bench/measure"
)

// barrier is one cycle of a barrier: every party arrives once and goes on.
func barrier(parties int) measure.Case {
	return measure.Case{
		Name: fmt.Sprintf("barrier with a context: one cycle of %d parties", parties),
		Ours: ours,
		Goals: []string{
			"time ≤ 0.7× " + closedChannel,
			"allocs ≤ 0",
		},
		Subjects: []measure.Subject{
			{Name: ours, Loop: cycles(parties, func() arrive {
				b := toolkit.NewBarrier(parties, nil)
				return func(ctx context.Context) error {
					_, err := b.Wait(ctx)
					return err
				}
			})},
			{Name: closedChannel, Loop: cycles(parties, func() arrive {
				return newChannelBarrier(parties).wait
			})},
		},
	}
}

// arrive waits at a barrier until all parties have come.
type arrive func(ctx context.Context) error

// cycles lets every party pass the barrier n times.
func cycles(parties int, prepare func() arrive) func(*measure.Stage) measure.Loop {
	return func(st *measure.Stage) measure.Loop {
		ctx, wait := cancellable(st), prepare()
		return func(n int) int {
			passed := measure.Spread(n*parties, parties, func(_, share int) int {
				did := 0
				for range share {
					if wait(ctx) == nil {
						did++
					}
				}
				return did
			})
			return passed / parties
		}
	}
}

// channelBarrier is a barrier written by hand: a channel for each
// cycle, closed by the last to arrive.
type channelBarrier struct {
	mu      sync.Mutex
	parties int
	here    int
	open    chan struct{}
}

func newChannelBarrier(parties int) *channelBarrier {
	return &channelBarrier{parties: parties, open: make(chan struct{})}
}

func (b *channelBarrier) wait(ctx context.Context) error {
	b.mu.Lock()
	b.here++
	if b.here == b.parties {
		close(b.open)
		b.open, b.here = make(chan struct{}), 0
		b.mu.Unlock()
		return nil
	}
	open := b.open
	b.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
