package sched

import (
	"math"
	"slices"
	"time"

	"github.com/stintgo/stint/internal/backlog"
)

// Forecast is what waits are estimated from, at one moment. It mixes two models.
//
// The first is how fast entries of the tier came to their turn lately: see pace. The
// second also knows the mean time that functions run and when those that run now began,
// and so when slots come free. If run times vary little, the second is much better for an
// entry with few ahead of it, and right when many functions began at once. If they vary
// like those of a Poisson process, the time since a function began says nothing about its
// end. The variance of the run times decides how much each model counts.
type Forecast struct {
	pace  pace
	limit int
	mean  float64   // run time of functions, in nanoseconds; 0 if not known
	vary  float64   // the variance of run times over the square of the mean, at most 1
	left  []float64 // remaining time of each slot in nanoseconds, ascending, if functions run for the mean
}

// forecast returns the present forecast. The lock is held.
func (e *Engine) forecast() Forecast {
	q := &e.queue
	at := q.read()
	f := Forecast{pace: q.pace, limit: q.policy.Bounds().Max()}
	if q.jobs.mean == 0 || f.limit == 0 || e.cfg.Slots != nil {
		return f
	}
	f.observe(&q.jobs)
	running := e.gate.running()
	switch {
	case f.limit > keptStarts:
	case e.cfg.Holders:
		begun, more := e.holders.begun(f.limit)
		f.slots(running, running-more, at, begun)
	default:
		begun := q.jobs.last(min(q.jobs.running, running, keptStarts))
		if len(begun) < running && e.waking.Load() { // a worker is about to begin
			begun = append(begun, at)
		}
		f.slots(running, running, at, begun)
	}
	return f
}

// observe sets the mean and the variance of run times.
func (f *Forecast) observe(j *jobs) {
	f.mean = j.mean
	f.vary = min(max(0, j.square/(j.mean*j.mean)-1), 1)
}

// slots sets how long slots are still in use. begun has the start times of some of those in
// use; unknown is how many there are of which it may have none.
func (f *Forecast) slots(running, unknown int, at int64, begun []int64) {
	f.left = make([]float64, max(0, f.limit-running)) // 0 for free slots
	for _, began := range begun {
		if left := f.mean - float64(at-began); left >= -f.late() {
			f.left = append(f.left, max(0, left))
			unknown--
		}
	}
	if most := f.pace.most(); unknown > 0 && most > 0 { // some may be held for hours
		turning := int(math.Round(most * f.mean * float64(f.limit)))
		unknown = min(max(0, turning-len(f.left)), unknown)
	}
	for i := max(0, unknown-f.limit); i < unknown; i++ {
		f.left = append(f.left, f.mean*float64(i+1)/float64(unknown+1))
	}
	slices.Sort(f.left)
	f.left = f.left[max(0, len(f.left)-f.limit):] // the rest goes, since the limit was lowered
}

// Estimate returns how long work will wait, and how many entries start per second while
// something waits. ok is false if there is no basis for an estimate.
func (f *Forecast) Estimate(w *Wait) (wait time.Duration, rate float64, ok bool) {
	every, share := f.pace.of(w.Tier)
	if every == 0 {
		every = f.mean
	}
	if f.limit == 0 || every == 0 {
		return 0, 0, false
	}
	every /= float64(f.limit) // nanoseconds from one start to the next
	t := turn{need: 1, share: share}
	for _, n := range w.Why.Ahead {
		t.need += float64(n)
	}
	t.most = float64(backlog.Cycle*w.Why.Ahead[w.Tier] + w.Why.GuardIn + 1)
	ns := t.starts() * every
	if f.knows(w, every) {
		steady := t.starts() * f.mean / float64(len(f.left))
		ns = f.vary*steady + (1-f.vary)*f.at(f.search(t))
	}
	return time.Duration(min(ns, math.MaxInt64/2)), float64(time.Second) / every, true
}

// knows reports whether the times at which slots come free apply to w. They do not if the
// tier's cap holds w back, if w needs several slots, or if slots come free much more or
// less often than the mean run time implies: then slots are suspended, or used by work
// whose times are not known.
func (f *Forecast) knows(w *Wait, every float64) bool {
	if len(f.left) == 0 || w.Why.AtCap && w.Why.Cap < w.Why.Max || w.Why.Weight > 1 {
		return false
	}
	ratio := every * float64(len(f.left)) / f.mean
	return ratio > 0.5 && ratio < 2
}

// turn is how many starts there are up to and including that of the work.
type turn struct {
	need  float64 // starts of what goes first, and of the work itself
	share float64 // of these in all starts
	most  float64 // starts after which the guard has started the work
}

// starts returns the number of starts in the long run.
func (t *turn) starts() float64 {
	if t.share <= 0 {
		return t.most
	}
	return min(t.need/t.share, t.most)
}

// late is by how many nanoseconds few functions exceed the mean: two standard deviations.
// Anything that has run for longer may be held for hours, or has ended and a function
// that began later runs in its place.
func (f *Forecast) late() float64 { return (0.01 + 2*math.Sqrt(f.vary)) * f.mean }

// at returns when a slot comes free for the n-th time, in nanoseconds from now.
func (f *Forecast) at(n float64) float64 {
	i := int(n) - 1
	return f.left[i%len(f.left)] + f.mean*float64(i/len(f.left))
}

// search returns the smallest number of starts by whose time no more starts of other work
// have come in between than the share allows, or those until the guard starts the work if
// they are fewer.
func (f *Forecast) search(t turn) float64 {
	n := min(t.need, t.most)
	for range 64 { // it converges fast, unless the share is small
		others := math.Round(f.at(n) / f.mean * float64(len(f.left)) * (1 - t.share))
		next := min(t.need+max(0, others), t.most)
		if next <= n {
			return n
		}
		n = next
	}
	return max(1, math.Round(t.starts()))
}
