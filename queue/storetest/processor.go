package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/queue"
)

// processor is a worker that does only what the contract of queue.Store asks of it: it
// listens, claims until there is nothing to claim, and then waits for a signal.
type processor struct {
	*trial
	clock    *stepClock
	claim    queue.Claim
	obeyNext bool // claims again at the Next of a claim, without a signal
}

// run ends when it has settled the given number of tasks, or when it has waited for a
// signal or an answer for as long as patience.
func (p *processor) run(tasks int) {
	ready, stop := p.Store.Listen(p.claim.Queue)
	defer stop()
	for done := 0; done < tasks; {
		n, err := p.step(ready)
		if err != nil {
			p.Errorf("worker %s, after %d of %d tasks: %v", p.claim.Worker, done, tasks, err)
			return
		}
		done += n
	}
}

// step works on what it can claim. If that is nothing, it waits until it is to claim again.
func (p *processor) step(ready <-chan struct{}) (n int, err error) {
	ctx, cancel := context.WithTimeout(p.Context(), patience)
	defer cancel()
	n, next, err := p.work(ctx)
	if err != nil || n > 0 {
		return n, err
	}
	if p.obeyNext && !next.IsZero() {
		p.clock.advanceTo(next)
		return 0, nil
	}
	select {
	case <-ready:
		return 0, nil
	case <-ctx.Done():
		return 0, errors.New("it waits for a signal")
	}
}

// work claims tasks and settles them as successes. next is the Next of the claim.
func (p *processor) work(ctx context.Context) (n int, next time.Time, err error) {
	claimed, err := p.Store.Claim(ctx, p.clock.now(), p.claim)
	if err != nil || len(claimed.Tasks) == 0 {
		return 0, claimed.Next, err
	}
	var outcomes []queue.Outcome
	for _, t := range claimed.Tasks {
		outcomes = append(outcomes, queue.Outcome{ID: t.ID, Token: t.Lease.Token, Kind: queue.OutcomeSuccess})
	}
	answers, err := p.Store.Settle(ctx, p.clock.now(), outcomes)
	return len(outcomes), claimed.Next, errors.Join(append(answers, err)...)
}

// stepClock is a clock that advances by a millisecond with every reading.
type stepClock struct {
	start  time.Time
	passed atomic.Int64 // nanoseconds
}

func (s *stepClock) now() time.Time {
	return s.start.Add(time.Duration(s.passed.Add(int64(time.Millisecond))))
}

// advanceTo moves the clock to t, unless it is past t.
func (s *stepClock) advanceTo(t time.Time) {
	for to := int64(t.Sub(s.start)); ; {
		passed := s.passed.Load()
		if passed >= to || s.passed.CompareAndSwap(passed, to) {
			return
		}
	}
}
