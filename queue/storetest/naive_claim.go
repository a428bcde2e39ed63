package storetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func (n *naive) Claim(_ context.Context, now time.Time, c queue.Claim) (claimed queue.Claimed, err error) {
	if err := validClaim(c); err != nil {
		return claimed, err
	}
	end, err := n.begin(now)
	if err != nil {
		return claimed, err
	}
	defer end()
	c.Queue = orDefault(c.Queue)
	n.reserve()
	for len(claimed.Tasks) < c.Max {
		r := n.choose(c)
		if r == nil {
			if claimed.Next = n.refuse(c); claimed.Next.IsZero() {
				claimed.Next = n.nextStart(c)
			}
			break
		}
		n.tokens++
		n.start(r, c, n.tokens)
		claimed.Tasks = append(claimed.Tasks, n.view(r))
		if len(claimed.Tasks) < c.Max && full(claimed.Tasks, c.Bytes) {
			claimed.Next = n.now
			break
		}
	}
	n.revise()
	return claimed, nil
}

func validClaim(c queue.Claim) error {
	if c.Max < 1 || c.Lease <= 0 {
		return fmt.Errorf("%w: a claim needs a Max and a Lease", queue.ErrInvalid)
	}
	return validWorker(c.Worker)
}

func validWorker(name string) error {
	if invalidName(name) {
		return fmt.Errorf("%w: a worker named %q", queue.ErrInvalid, name)
	}
	return nil
}

func invalidName(name string) bool {
	const most = 200
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	return name == "" || len(name) > most || !utf8.ValidString(name) || strings.ContainsFunc(name, isControl)
}

// start leases a task.
func (n *naive) start(r *row, c queue.Claim, token queue.Token) {
	n.started(r.Queue)
	n.step(r, queue.Running, queue.Step{On: queue.OnClaim, By: c.Worker, Token: token})
	r.Lease = queue.Lease{Worker: c.Worker, Token: token, Until: n.now.Add(c.Lease)}
	r.Progress, r.remote = queue.Progress{}, 0
	if c.Remote {
		r.remote = c.Lease
	}
	s, q := n.inForce(r.Queue), n.queue(r.Queue)
	q.starts++
	q.last[line{r.Tier, r.Key}] = q.starts
	q.arrival = spend(s.Rate, q.arrival, n.now)
	if r.Key != "" {
		q.keys[r.Key] = spend(n.keyRate(r.Queue, r.Key), q.keys[r.Key], n.now)
	}
}

// choose returns the task that starts next, nil if none may.
func (n *naive) choose(c queue.Claim) *row {
	// Every eighth start is for one tier, by turns, also past its cap.
	const share = 8
	q := n.queue(c.Queue)
	if own := q.starts / share % stint.Tiers; q.starts%share == share-1 {
		if r := n.firstOf(n.eligible(c), stint.Lowest+stint.Priority(own), q); r != nil {
			return r
		}
	}
	return n.withinCaps(c)
}

// withinCaps is choose without the starvation guard.
func (n *naive) withinCaps(c queue.Claim) *row {
	eligible, running := n.eligible(c), n.running(c.Queue, nil)
	for tier := stint.Highest; tier >= stint.Lowest; tier-- {
		if r := n.firstOf(eligible, tier, n.queue(c.Queue)); r != nil && running < capOf(n.inForce(c.Queue), tier) {
			return r
		}
	}
	return nil
}

// eligible are the tasks that a claim could start, caps aside.
func (n *naive) eligible(c queue.Claim) []*row {
	if !n.totalAllows(c.Queue) {
		return nil
	}
	return n.ready(c)
}

// ready are the tasks that a claim could start, caps and the total aside.
func (n *naive) ready(c queue.Claim) (all []*row) {
	s := n.inForce(c.Queue)
	if n.running(c.Queue, nil) >= most(s.Max) || mayStartAt(s.Rate, n.queue(c.Queue).arrival).After(n.now) {
		return nil
	}
	for _, r := range n.rows {
		if n.claimable(r, c) && len(n.limits(r)) == 0 {
			all = append(all, r)
		}
	}
	return all
}

// claimable reports whether nothing but limits keeps a claim from a task.
func (n *naive) claimable(r *row, c queue.Claim) bool {
	late := !r.Deadline.IsZero() && !r.Deadline.After(n.now)
	return r.Queue == c.Queue && r.State == queue.Waiting && slices.Contains(c.Kinds, r.Kind) && !late
}

// firstOf returns the first of a tier: of the line that has waited longest for
// its turn, the task that was submitted first.
func (n *naive) firstOf(rows []*row, tier stint.Priority, q *turns) (first *row) {
	last := func(r *row) int { return q.last[line{r.Tier, r.Key}] }
	for _, r := range rows {
		if r.Tier == tier && (first == nil || last(r) < last(first)) {
			first = r
		}
	}
	return first
}

// nextStart is when a rate allows a start, if it is rates alone that keep a claim
// from more tasks; zero otherwise.
func (n *naive) nextStart(c queue.Claim) (next time.Time) {
	s, q := n.inForce(c.Queue), n.queue(c.Queue)
	running := n.running(c.Queue, nil)
	for _, r := range n.rows {
		ofRate := func(h queue.Hold) bool { return h.Code == queue.HoldKeyRate }
		if !n.claimable(r, c) || len(slices.DeleteFunc(n.limits(r), ofRate)) > 0 || running >= capOf(s, r.Tier) ||
			!n.totalAllows(c.Queue) {
			continue
		}
		at := mayStartAt(s.Rate, q.arrival)
		if r.Key != "" {
			at = later(at, mayStartAt(n.keyRate(r.Queue, r.Key), q.keys[r.Key]))
		}
		if at.After(n.now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// mayStartAt is the first time at which a rate allows a start, by the theoretical
// arrival time of the generic cell rate algorithm (ITU-T I.371).
func mayStartAt(r queue.Rate, arrival time.Time) time.Time {
	if r.PerSecond <= 0 {
		return time.Time{}
	}
	return arrival.Add(-time.Duration(max(r.Burst, 1)-1) * interval(r))
}

// spend counts a start.
func spend(r queue.Rate, arrival, now time.Time) time.Time {
	if r.PerSecond <= 0 {
		return arrival
	}
	return later(arrival, now).Add(interval(r))
}

func interval(r queue.Rate) time.Duration {
	return time.Duration(math.Round(float64(time.Second) / r.PerSecond))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// capOf is how many may run before a tier has to wait: an unset cap is that of
// the tier below; above the topmost set one it is the limit, and below the
// bottommost it is that one's.
func capOf(s queue.Settings, tier stint.Priority) int {
	set := []int{s.Caps.Lowest, s.Caps.Lower, s.Caps.Low, s.Caps.Normal, s.Caps.High, s.Caps.Higher, s.Caps.Highest}
	i := int(tier - stint.Lowest)
	if !slices.ContainsFunc(set[i:], func(limit int) bool { return limit > 0 }) {
		return most(s.Max)
	}
	for ; i >= 0; i-- {
		if set[i] > 0 {
			return min(set[i], most(s.Max))
		}
	}
	bottom := slices.IndexFunc(set, func(limit int) bool { return limit > 0 })
	return min(set[bottom], most(s.Max))
}

// most is a limit as a number: 0 stands for none.
func most(limit int) int {
	if limit == 0 {
		return math.MaxInt
	}
	return limit
}
