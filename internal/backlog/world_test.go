package backlog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
)

// The model test's world: the backlog, the naive model, and what runs.
type world struct {
	t       *testing.T
	rnd     *rand.Rand
	cfg     backlog.Config
	fast    *backlog.Backlog[int]
	slow    *model
	classes int
	entries map[int]*backlog.Entry[int]
	runs    []run
	running int
	takes   []int // the classes that are taken at present
	lastID  int
	started map[lineName]int // id of the last entry of a line that started
}

type run struct {
	key    string
	weight int
}

var keys = []string{"", "", "a", "b", "c", "d"}

// Every other world has that many classes; the rest have one, as the scheduler has.
const classes = 4

func (w *world) step() string {
	switch w.rnd.IntN(12) {
	case 0, 1, 2:
		return w.arrive(1)
	case 3:
		return w.arrive(1 + w.rnd.IntN(4))
	case 4, 5:
		return w.finish()
	case 6:
		return w.cancel()
	case 7:
		return w.resize()
	case 8:
		return w.recap()
	case 9:
		return w.limitKeys()
	case 10:
		return w.serve(w.rnd.IntN(2) == 0)
	default:
		return w.burst()
	}
}

// arrive starts at once what may, and queues the rest, as the scheduler does.
func (w *world) arrive(weight int) string {
	if w.fast.Len() > 40 {
		return w.finish() // the naive model scans
	}
	w.lastID++
	id, tier, key := w.lastID, w.rnd.IntN(backlog.Tiers), keys[w.rnd.IntN(len(keys))]
	if w.cfg.Max > 0 {
		weight = min(weight, w.cfg.Max)
	}
	got, want := w.fast.Admits(tier, key, weight, w.running), w.slow.admits(tier, key, weight, w.running)
	if got != want {
		w.t.Fatalf("arrival in tier %d with key %q and weight %d admitted: %v, model says %v", tier, key, weight, got, want)
	}
	if got && w.rnd.IntN(2) == 0 {
		w.fast.Admit(key)
		w.slow.run(key)
		w.begin(run{key, weight})
		return fmt.Sprintf("admit %d", id)
	}
	e := &backlog.Entry[int]{Value: id}
	w.entries[id] = e
	class := w.rnd.IntN(w.classes)
	if class == 0 {
		w.fast.Push(e, tier, key, weight)
	} else {
		w.fast.PushClass(e, tier, key, class, weight)
	}
	w.slow.push(id, lineName{tier, key, class}, weight)
	if got {
		w.dispatch()
	}
	return fmt.Sprintf("push %d tier %d key %q class %d weight %d", id, tier, key, class, weight)
}

func (w *world) begin(r run) {
	w.running += r.weight
	w.runs = append(w.runs, r)
	if w.running > w.cfg.Max {
		w.t.Fatalf("%d slots in use, the maximum is %d", w.running, w.cfg.Max)
	}
}

// peek asks both for the next entry of the classes that are taken.
func (w *world) peek() (*backlog.Entry[int], *modelEntry) {
	m := w.slow.peek(w.running, w.takes)
	if w.takesAll() {
		return w.fast.Peek(w.running), m
	}
	return w.fast.PeekOf(w.running, w.takes), m
}

func (w *world) takesAll() bool { return slices.Equal(w.takes, everyClass[:w.classes]) }

// serve changes the classes that are taken. One of them has no entries ever.
func (w *world) serve(all bool) string {
	w.takes = nil
	for class := range w.classes {
		if all || w.rnd.IntN(2) == 0 {
			w.takes = append(w.takes, class)
		}
	}
	if !all && w.rnd.IntN(2) == 0 {
		w.takes = append(w.takes, classes+w.rnd.IntN(3))
	}
	w.dispatch()
	return fmt.Sprintf("serve %v", w.takes)
}

// dispatch starts all that may start and returns how many did.
func (w *world) dispatch() (started int) {
	for {
		e, m := w.peek()
		if (e == nil) != (m == nil) || e != nil && e.Value != m.id {
			w.t.Fatalf("with %d running, next is %v, model says %v", w.running, e, m)
		}
		if e == nil {
			return started
		}
		w.checkFIFO(m)
		if e.Class() != m.line.class || e.Tier() != m.line.tier {
			w.t.Fatalf("entry %d is of class %d and tier %d, pushed as %v", m.id, e.Class(), e.Tier(), m.line)
		}
		r := run{e.Key(), e.Weight()}
		w.fast.Start(e)
		w.slow.start(m)
		delete(w.entries, m.id)
		w.begin(r)
		if r.key != "" && w.cfg.PerKey > 0 && w.slow.keyRuns[r.key] > w.cfg.PerKey {
			w.t.Fatalf("%d of key %q run, the limit is %d", w.slow.keyRuns[r.key], r.key, w.cfg.PerKey)
		}
		started++
	}
}

func (w *world) checkFIFO(m *modelEntry) {
	if last := w.started[m.line]; last > m.id {
		w.t.Fatalf("entry %d of line %v starts after %d, which came later", m.id, m.line, last)
	}
	w.started[m.line] = m.id
}

func (w *world) finish() string {
	if len(w.runs) == 0 {
		return "nothing to finish"
	}
	i := w.rnd.IntN(len(w.runs))
	r := w.runs[i]
	w.runs = slices.Delete(w.runs, i, i+1)
	w.running -= r.weight
	w.fast.Finish(r.key)
	w.slow.finish(r.key)
	if w.dispatch() == 0 {
		if w.takesAll() {
			w.fast.Pass(w.running)
		} else {
			w.fast.PassOf(w.running, w.takes)
		}
		w.slow.pass(w.running, w.takes)
	}
	return fmt.Sprintf("finish %v", r)
}

func (w *world) cancel() string {
	if len(w.slow.waiting) == 0 {
		return "nothing to cancel"
	}
	id := w.slow.waiting[w.rnd.IntN(len(w.slow.waiting))].id
	if !w.fast.Remove(w.entries[id]) || w.fast.Remove(w.entries[id]) {
		w.t.Fatalf("entry %d must be removable once", id)
	}
	w.slow.remove(id)
	delete(w.entries, id)
	w.dispatch()
	return fmt.Sprintf("cancel %d", id)
}

func (w *world) resize() string {
	w.cfg.Max = w.rnd.IntN(12)
	if heaviest := w.heaviest(); w.cfg.Max < heaviest {
		w.cfg.Max = heaviest // the scheduler refuses what can never run
	}
	w.fast.SetMax(w.cfg.Max)
	w.slow.cfg.Max = w.cfg.Max
	w.slow.caps = backlog.Resolve(w.cfg.Max, w.cfg.Caps)
	w.dispatch()
	return fmt.Sprintf("resize %d", w.cfg.Max)
}

func (w *world) heaviest() (weight int) {
	for _, e := range w.slow.waiting {
		weight = max(weight, e.weight)
	}
	return weight
}

func (w *world) recap() string {
	w.cfg.Caps = randomCaps(w.rnd)
	w.fast.SetCaps(w.cfg.Caps)
	w.slow.caps = backlog.Resolve(w.cfg.Max, w.cfg.Caps)
	w.dispatch()
	return fmt.Sprintf("caps %v", w.cfg.Caps)
}

func randomCaps(rnd *rand.Rand) (caps [backlog.Tiers]int) {
	for i := range caps {
		if rnd.IntN(3) == 0 {
			caps[i] = 1 + rnd.IntN(10)
		}
	}
	return caps
}

func (w *world) limitKeys() string {
	w.cfg.PerKey = w.rnd.IntN(4)
	w.fast.SetPerKey(w.cfg.PerKey)
	w.slow.cfg.PerKey = w.cfg.PerKey
	for _, key := range keys {
		w.slow.setAside(key)
	}
	w.slow.readmit()
	w.dispatch()
	return fmt.Sprintf("per key %d", w.cfg.PerKey)
}

// burst queues many entries of one line, so that lines get long.
func (w *world) burst() string {
	if w.fast.Len() > 24 {
		return "enough queued"
	}
	for range 5 {
		w.arrive(1)
	}
	return "burst"
}

func (w *world) check(did string) {
	if got, want := w.fast.Len(), len(w.slow.waiting); got != want {
		w.t.Fatalf("after %s: %d queued, model says %d", did, got, want)
	}
	if got, want := w.fast.Closed(w.running), w.slow.closed(w.running); got != want {
		w.t.Fatalf("after %s: closed tiers %07b, model says %07b", did, got, want)
	}
	for _, key := range keys[2:] {
		if got, want := w.fast.Running(key), w.slow.keyRuns[key]; got != want {
			w.t.Fatalf("after %s: %d of key %q run, model says %d", did, got, key, want)
		}
	}
}

// A million random operations of eleven kinds give the same decisions as the
// naive model, and no invariant is broken after any of them.
func TestModel_BacklogMatchesNaivePolicy(t *testing.T) {
	const worlds, steps = 200, 5000
	first := seed(t)
	for i := range uint64(worlds) {
		rnd := rand.New(rand.NewPCG(first+i, 0))
		cfg := backlog.Config{
			Max: 1 + rnd.IntN(10), Caps: randomCaps(rnd), PerKey: rnd.IntN(3),
			Share: func(key string) int { return int(key[0]-'a')%3 + 1 },
		}
		w := &world{
			t: t, rnd: rnd, cfg: cfg, fast: backlog.New[int](cfg), slow: newModel(cfg),
			classes: 1 + (classes-1)*int(i%2), entries: map[int]*backlog.Entry[int]{}, started: map[lineName]int{},
		}
		w.serve(true)
		for range steps {
			w.check(w.step())
		}
		w.drain()
		if t.Failed() {
			t.Fatalf("STINT_SEED=%d", first+i)
		}
	}
}

// drain finishes everything: no entry and no slot may be left.
func (w *world) drain() {
	w.cfg.Max, w.cfg.PerKey = max(w.cfg.Max, w.heaviest(), 1), 0
	w.fast.SetMax(w.cfg.Max)
	w.fast.SetPerKey(0)
	w.slow.cfg = w.cfg
	w.slow.caps = backlog.Resolve(w.cfg.Max, w.cfg.Caps)
	w.slow.readmit()
	w.serve(true)
	for len(w.runs) > 0 {
		w.check(w.finish())
	}
	if w.fast.Len() != 0 || w.running != 0 || w.fast.Keys() != 0 {
		w.t.Fatalf("drained: %d queued, %d slots in use, %d keys", w.fast.Len(), w.running, w.fast.Keys())
	}
}
