package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

const (
	// moveEvery is about how often a process that leads too many groups hands one over, and
	// the shortest time between two groups that a process accepts. It is longer than
	// enrollEvery, so that the counts that a leader knows are those after the last move.
	moveEvery = 5 * time.Second
	// declinedFor is for how many times moveEvery a process that has not taken a group over is not
	// asked again: another one may lead more groups, but few enough, and take it.
	declinedFor = 6
)

// seats are the groups that a process leads. A process hands a group over only to one that
// leads at least two fewer, which checks that itself. So each move makes the sum of the
// squares of the numbers smaller, and groups never move in circles. A nil *seats is that of a
// node without groups. It is safe for concurrent use.
type seats struct {
	every time.Duration // moveEvery, but for tests
	leads atomic.Int32

	mu       sync.Mutex // guards the fields below
	accepted time.Time  // when the last invitation was accepted; zero if none was
}

// replaced counts the lead of a node whose view has changed. old may be nil.
func (s *seats) replaced(old, now *view) {
	if s == nil {
		return
	}
	if old != nil && old.leads() {
		s.leads.Add(-1)
	}
	if now.leads() {
		s.leads.Add(1)
	}
}

// load returns how many groups the process leads.
func (s *seats) load() int {
	if s == nil {
		return 0
	}
	return int(s.leads.Load())
}

// accept reports whether the process takes a group over from one that leads so many. After
// that it accepts no other for a while, until the load has changed.
func (s *seats) accept(leads int, now time.Time) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load()+2 > leads || !s.accepted.IsZero() && now.Sub(s.accepted) < s.every {
		return false
	}
	s.accepted = now
	return true
}

// spread hands groups over to processes that lead fewer, one at a time, until ctx ends.
func (s *seats) spread(ctx context.Context, nodes []*election) {
	declined := make(map[string]time.Time) // when to ask a process again, by its name
	for ctx.Err() == nil {
		// Not all processes at the same time.
		sleep(ctx, s.every+time.Duration(rand.Int64N(int64(s.every)/2))) //nolint:gosec // no secret
		now := clock.Now()
		maps.DeleteFunc(declined, func(_ string, again time.Time) bool { return !now.Before(again) })
		n, to, leads := surplus(nodes, now, func(name string) bool { return !declined[name].IsZero() })
		if n == nil {
			continue
		}
		err := n.handOver(ctx, to, leads)
		if err != nil {
			declined[to.Name] = now.Add(declinedFor * s.every)
		}
		if err != nil && !errors.Is(err, errDeclined) && ctx.Err() == nil {
			n.log.Warn("a group could not be handed over; trying again",
				slog.String("to", to.Name), slog.Any("error", err))
		}
	}
}

// surplus returns a node to hand over and the one that is to lead instead, if the process
// leads at least two groups more than another one that is not omitted.
func surplus(nodes []*election, now time.Time, omit func(name string) bool) (from *election, to member, leads int) {
	var views []*view
	for _, n := range nodes {
		v := n.current.view()
		views = append(views, v)
		if v.leads() {
			leads++
		}
	}
	for i, v := range views {
		if !v.leads() {
			continue
		}
		least := v.term.roster.least(now, omit)
		if len(least) == 0 || least[0].Leads+2 > leads || from != nil && least[0].Leads >= to.Leads {
			continue
		}
		from, to = nodes[i], least[rand.IntN(len(least))] //nolint:gosec // no secret
	}
	return from, to, leads
}
