package sched //nolint:testpackage // the queue, and when it charges starts to the policy, cannot be seen from outside

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/internal/seeded"
)

// aloneEntry is an entry of both queues: the first is under test, and in the second the
// policy is up to date after each step.
type aloneEntry [2]*entry

// aloneWorld is two queues that perform the same operations in lock-step.
type aloneWorld struct {
	t       *testing.T
	rnd     *rand.Rand
	queues  [2]*queue
	waiting []aloneEntry
	running []Ask
	sum     int // slots in use
	arrived int64
	tiers   int // tiers in use
	keys    int // keys in use
	limit   int
	pushes  int // in ten steps
	plain   int // arrivals without a key per arrival with one, approximately
	skipped int // how often the first queue had starts not charged to its policy
}

func newAloneWorld(t *testing.T, rnd *rand.Rand) *aloneWorld {
	t.Helper()
	w := &aloneWorld{t: t, rnd: rnd, tiers: 1 + rnd.IntN(3), keys: rnd.IntN(4), limit: 1 + rnd.IntN(6)}
	w.pushes, w.plain = 1+rnd.IntN(4), 2+rnd.IntN(6)
	cfg := backlog.Config{Max: w.limit, PerKey: rnd.IntN(3)}
	if rnd.IntN(2) == 0 {
		cfg.Caps[rnd.IntN(Tiers)] = 1 + rnd.IntN(w.limit)
	}
	for i := range w.queues {
		q := &queue{alone: -1, policy: backlog.New[*entry](cfg)}
		w.queues[i] = q
	}
	return w
}

// upToDate charges all starts to the policy of the second queue, and makes the next step
// ask it.
func (w *aloneWorld) upToDate() {
	w.queues[1].log()
	w.queues[1].alone = -1
	if q := w.queues[0]; q.alone >= 0 && q.runs[q.alone].started > 0 {
		w.skipped++
	}
}

// each performs an operation on both queues.
func (w *aloneWorld) each(do func(i int, q *queue)) {
	for i, q := range w.queues {
		do(i, q)
	}
	w.upToDate()
}

func (w *aloneWorld) push() {
	a := Ask{Weight: 1, Tier: int8(w.rnd.IntN(w.tiers))}
	if w.keys > 0 && w.rnd.IntN(w.plain) == 0 {
		a.Key = string(rune('a' + w.rnd.IntN(w.keys)))
	}
	if w.rnd.IntN(3) == 0 {
		a.Weight = int32(1 + w.rnd.IntN(w.limit))
	}
	var p aloneEntry
	w.each(func(i int, q *queue) {
		x := &entry{use: use{Ask: a, since: w.arrived}}
		x.node.Value = x
		q.push(x, nil)
		p[i] = x
	})
	w.arrived++
	w.waiting = append(w.waiting, p)
}

func (w *aloneWorld) remove() {
	at := w.rnd.IntN(len(w.waiting))
	p := w.waiting[at]
	w.each(func(i int, q *queue) { q.remove(q.entered(p[i])) })
	w.waiting = slices.Delete(w.waiting, at, at+1)
}

// move moves an entry to another tier.
func (w *aloneWorld) move() {
	p, to := w.waiting[w.rnd.IntN(len(w.waiting))], w.rnd.IntN(w.tiers)
	if int(p[0].Tier) == to {
		return
	}
	w.each(func(i int, q *queue) { q.move(q.entered(p[i]), to, w.arrived) })
	w.arrived++
}

// end ends running work.
func (w *aloneWorld) end() {
	at := w.rnd.IntN(len(w.running))
	a := w.running[at]
	w.sum -= int(a.Weight)
	w.each(func(_ int, q *queue) {
		if a.Key != "" {
			q.log().Keys().Finish(a.Key)
		}
		q.log().Pass(w.sum)
	})
	w.running = slices.Delete(w.running, at, at+1)
}

// start starts the next piece, if it may start.
func (w *aloneWorld) start() {
	var next [2]piece
	var ok [2]bool
	var closed [2]uint8
	w.each(func(i int, q *queue) {
		next[i], ok[i] = q.peek(w.sum)
		closed[i] = q.closed(w.sum)
	})
	if ok[0] != ok[1] || ok[0] && next[0].x.since != next[1].x.since {
		w.t.Fatalf("next is %+v; up to date it is %+v", next[0], next[1])
	}
	if closed[0] != closed[1] {
		w.t.Fatalf("closed tiers are %07b, up to date %07b", closed[0], closed[1])
	}
	if !ok[0] {
		return
	}
	w.each(func(i int, q *queue) { q.start(next[i]) })
	x := next[0].x
	w.sum += int(x.Weight)
	w.running = append(w.running, x.Ask)
	w.waiting = slices.DeleteFunc(w.waiting, func(p aloneEntry) bool { return p[0] == x })
}

// why compares the reasons for which one entry waits.
func (w *aloneWorld) why() {
	p := w.waiting[w.rnd.IntN(len(w.waiting))]
	var why [2]backlog.Reasons
	w.each(func(i int, q *queue) { why[i] = q.why(q.entered(p[i]), w.sum) })
	if why[0] != why[1] {
		w.t.Fatalf("the reasons are\n%+v, up to date\n%+v", why[0], why[1])
	}
}

// While one fifo is alone, the queue does not charge starts to the policy. Its decisions are the
// same as those of a queue that charges them at once.
func TestModel_QueueOfOneFIFOMatchesThePolicy(t *testing.T) {
	const plays, steps = 1500, 200
	seed, skipped := seeded.Seed(t), 0
	for play := range uint64(plays) {
		w := newAloneWorld(t, rand.New(rand.NewPCG(seed, play)))
		for range steps {
			switch k := w.rnd.IntN(10); {
			case k < w.pushes:
				w.push()
			case k == 4 && w.rnd.IntN(2) == 0 && len(w.waiting) > 0:
				w.remove()
			case k == 5 && w.rnd.IntN(2) == 0 && len(w.waiting) > 0:
				w.move()
			case k < 7 && len(w.running) > 0:
				w.end()
			default:
				w.start()
			}
			if len(w.waiting) > 0 && w.rnd.IntN(4) == 0 {
				w.why()
			}
		}
		skipped += w.skipped
	}
	if skipped == 0 {
		t.Error("the policy was always up to date")
	}
}
