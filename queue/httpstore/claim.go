package httpstore

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// Claim is as [queue.Store] says. It first repeats an earlier claim of the same worker,
// queue and kinds that was not answered.
func (s *Store) Claim(ctx context.Context, now time.Time, c queue.Claim) (out queue.Claimed, err error) {
	if err := checkNames(append([]string{c.Worker, c.Queue}, c.Kinds...)...); err != nil {
		return out, err
	}
	for all := c.Max; ; {
		ask, before := s.unanswered.take(c)
		if !before {
			if ask, err = s.newClaiming(now, c); err != nil {
				return out, err
			}
		}
		got, err := s.claim(ctx, now, c, ask)
		switch {
		case err != nil && len(out.Tasks) > 0:
			out.Next = now // claim again for the rest
			return out, nil
		case err != nil:
			return queue.Claimed{}, err
		}
		out.Tasks, out.Next = append(out.Tasks, got.Tasks...), got.Next
		if c.Max = all - len(out.Tasks); !before || c.Max <= 0 {
			return out, nil
		}
		if c.Bytes == 0 {
			continue
		}
		if c.Bytes -= sizeOf(got.Tasks); c.Bytes <= 0 {
			out.Next = now // for the rest
			return out, nil
		}
	}
}

// claiming is a claim that may be sent more than once.
type claiming struct {
	queue.Claim
	q request
}

func (s *Store) newClaiming(now time.Time, c queue.Claim) (claiming, error) {
	q, err := s.newRequest(now, wire.Claim, &c)
	q.key = rand.Text()
	return claiming{c, q}, err
}

// claimDelay is by how much a lease may end before the time that the worker assumes.
const claimDelay = time.Second

// claim sends a claim for what c asks. It releases tasks that exceed c, and leases
// that began more than claimDelay before now, because the worker would take them for new ones. A
// claim without an answer is kept for the next call.
func (s *Store) claim(ctx context.Context, now time.Time, c queue.Claim, ask claiming) (out queue.Claimed, err error) {
	defer func() {
		if errors.Is(err, queue.ErrUnavailable) || ctx.Err() != nil && err != nil {
			s.unanswered.put(ask)
		}
	}()
	ask.q.now = now
	ahead, err := s.deliver(ctx, ask.q, &out)
	if err == nil && len(out.Tasks) > max(ask.Max, 0) {
		err = s.invalidAnswer("%d tasks for a claim of %d", len(out.Tasks), ask.Max)
	}
	if err != nil {
		return queue.Claimed{}, err
	}
	var back []queue.Outcome
	taken := 0
	out.Tasks = slices.DeleteFunc(out.Tasks, func(t queue.Task) bool {
		left := earlier(t.Lease.Until, ahead).Sub(now)
		if taken < c.Max && left >= c.Lease-claimDelay {
			taken++
			return false
		}
		back = append(back, queue.Outcome{ID: t.ID, Token: t.Lease.Token, Kind: queue.OutcomeRelease})
		return true
	})
	if len(back) > 0 {
		if _, err := s.Settle(ctx, now, back); err != nil { // a lease that has ended needs no release
			return queue.Claimed{}, err
		}
	}
	out.Next = earlier(out.Next, ahead)
	return out, nil
}

// unanswered has the claims without an answer that the server may have made: their tasks
// would have no worker until their leases expire, and count as crashed.
type unanswered struct {
	mu    sync.Mutex
	calls []claiming // the oldest first
}

// unansweredMost is the largest number of claims that are kept. There is about one for
// each queue of each worker, and those of workers that have ended are useless.
const unansweredMost = 256

func (u *unanswered) put(c claiming) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.calls = append(u.calls, c); len(u.calls) > unansweredMost {
		u.calls = slices.Delete(u.calls, 0, 1)
	}
}

// take removes and returns a claim with the same worker, queue and kinds.
func (u *unanswered) take(c queue.Claim) (ask claiming, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.IndexFunc(u.calls, func(was claiming) bool {
		return was.Worker == c.Worker && was.Queue == c.Queue && slices.Equal(was.Kinds, c.Kinds)
	})
	if i < 0 {
		return ask, false
	}
	ask = u.calls[i]
	u.calls = slices.Delete(u.calls, i, i+1)
	return ask, true
}
