package backlog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/internal/seeded"
)

// The model test's world: the backlog, the model, and what runs.
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
}

type run struct {
	id     int
	queue  queueName
	weight int
	ticket uint64 // 0 if it has never been queued
}

var keys = []string{"", "", "a", "b", "c", "d"}

// Every other world has that many classes; the rest have one, as the scheduler has.
const classes = 4

func (w *world) step() string {
	switch w.rnd.IntN(15) {
	case 0, 1, 2:
		return w.arrive(w.anyQueue(), 1)
	case 3:
		return w.arrive(w.anyQueue(), 1+w.rnd.IntN(4))
	case 4, 5:
		return w.finish()
	case 6:
		return w.cancel()
	case 7:
		return w.resize()
	case 8:
		return w.recap()
	case 9:
		if w.rnd.IntN(2) == 0 {
			return w.shareLimit()
		}
		return w.limitKeys()
	case 10:
		return w.fail()
	case 11:
		return w.restart()
	case 12:
		return w.block()
	case 13:
		return w.serve(w.rnd.IntN(2) == 0)
	default:
		return w.burst()
	}
}

func (w *world) anyQueue() queueName {
	return queueName{w.rnd.IntN(backlog.Tiers), keys[w.rnd.IntN(len(keys))], w.rnd.IntN(w.classes)}
}

// arrive starts at once what may, and queues the rest, as the scheduler does.
func (w *world) arrive(queue queueName, weight int) string {
	if w.fast.Len() > 40 {
		return w.finish() // the model scans
	}
	w.lastID++
	id, tier, key, class := w.lastID, queue.tier, queue.key, queue.class
	if w.cfg.Max > 0 {
		weight = min(weight, w.cfg.Max)
	}
	got, want := w.fast.Admits(tier, key, weight, w.running), w.slow.admits(tier, key, weight, w.running)
	if got != want {
		w.t.Fatalf("arrival in tier %d with key %q and weight %d admitted: %v, model says %v", tier, key, weight, got, want)
	}
	if got && w.rnd.IntN(2) == 0 {
		w.fast.Keys().Admit(key)
		w.slow.run(key)
		w.begin(run{id, queueName{tier, key, 0}, weight, 0})
		return fmt.Sprintf("admit %d", id)
	}
	e := &backlog.Entry[int]{Value: id}
	w.entries[id] = e
	if class == 0 {
		w.fast.Push(e, backlog.Arrival{Tier: int8(tier), Key: key, Weight: int32(weight)})
	} else {
		w.fast.Push(e, backlog.Arrival{Tier: int8(tier), Key: key, Class: int32(class), Weight: int32(weight)})
	}
	w.slow.push(id, queue, weight, 0)
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
		if e.Class() != m.queue.class || e.Tier() != m.queue.tier {
			w.t.Fatalf("entry %d is of class %d and tier %d, pushed as %v", m.id, e.Class(), e.Tier(), m.queue)
		}
		r := run{m.id, m.queue, e.Weight(), e.Ticket()}
		w.fast.Start(e)
		w.slow.start(m)
		delete(w.entries, m.id)
		w.begin(r)
		if limit := w.slow.limitOf(r.queue.key); limit > 0 && w.slow.keyRuns[r.queue.key] > limit {
			w.t.Fatalf("%d of key %q run, the limit is %d", w.slow.keyRuns[r.queue.key], r.queue.key, limit)
		}
		started++
	}
}

// checkFIFO fails if an older entry is queued in the queue of one that starts.
func (w *world) checkFIFO(m *modelEntry) {
	e := w.entries[m.id]
	for id, x := range w.entries {
		if x.Ticket() < e.Ticket() && x.Tier() == e.Tier() && x.Key() == e.Key() && x.Class() == e.Class() {
			w.t.Fatalf("entry %d of queue %v starts before %d, which is older", m.id, m.queue, id)
		}
	}
}

func (w *world) finish() string {
	if len(w.runs) == 0 {
		return "nothing to finish"
	}
	i := w.rnd.IntN(len(w.runs))
	r := w.runs[i]
	w.runs = slices.Delete(w.runs, i, i+1)
	w.running -= r.weight
	w.fast.Keys().Finish(r.queue.key)
	w.slow.finish(r.queue.key)
	if r.ticket > 0 && w.rnd.IntN(3) == 0 {
		w.comeBack(r) // before or after others have its place
	}
	if w.dispatch() == 0 {
		w.pass()
	}
	return fmt.Sprintf("finish %v", r)
}

func (w *world) pass() {
	if w.takesAll() {
		w.fast.Pass(w.running)
	} else {
		w.fast.PassOf(w.running, w.takes)
	}
	w.slow.pass(w.running, w.takes)
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
	w.cfg.Max = w.rnd.IntN(15)
	if heaviest := w.heaviest(); w.cfg.Max < heaviest {
		w.cfg.Max = heaviest // the scheduler refuses what can never run
	}
	w.fast.Bounds().SetMax(w.cfg.Max)
	w.slow.cfg.Max = w.cfg.Max
	w.slow.caps = backlog.Resolve(w.cfg.Max, w.cfg.Caps)
	w.dispatch()
	return fmt.Sprintf("resize %d", w.cfg.Max)
}

func (w *world) heaviest() (weight int) {
	for _, e := range w.slow.waiting {
		weight = max(weight, e.weight)
	}
	for _, r := range w.runs { // they may come back
		weight = max(weight, r.weight)
	}
	return weight
}

func (w *world) recap() string {
	w.cfg.Caps = randomCaps(w.rnd)
	w.fast.Bounds().SetCaps(w.cfg.Caps)
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
	w.cfg.KeyLimits = nil
	if w.rnd.IntN(2) == 0 {
		w.cfg.KeyLimits = map[string]int{keys[2+w.rnd.IntN(4)]: w.rnd.IntN(4), keys[2+w.rnd.IntN(4)]: w.rnd.IntN(4)}
	}
	w.fast.Keys().SetLimits(w.cfg.PerKey, w.cfg.KeyLimits)
	w.slow.cfg.PerKey, w.slow.cfg.KeyLimits = w.cfg.PerKey, w.cfg.KeyLimits
	w.limited()
	return fmt.Sprintf("per key %d, of single ones %v", w.cfg.PerKey, w.cfg.KeyLimits)
}

// shareLimit changes the shared limit of a key.
func (w *world) shareLimit() string {
	key := keys[2+w.rnd.IntN(4)]
	if limit := w.rnd.IntN(5); limit < 4 {
		w.cfg.SharedLimits[key] = limit
	} else {
		delete(w.cfg.SharedLimits, key)
	}
	w.fast.Keys().Review(key)
	w.limited()
	return fmt.Sprintf("shared limits %v", w.cfg.SharedLimits)
}

// limited ends a change of the limits of keys.
func (w *world) limited() {
	for _, key := range keys {
		w.slow.setAside(key)
	}
	w.slow.readmit()
	w.dispatch()
}

// burst queues many entries of one queue, so that queues get long.
func (w *world) burst() string {
	if w.fast.Len() > 24 {
		return "enough queued"
	}
	queue := w.anyQueue()
	for range 5 {
		w.arrive(queue, 1)
	}
	return fmt.Sprintf("burst of %v", queue)
}

func (w *world) check(did string) {
	if got, want := w.fast.Len(), len(w.slow.waiting); got != want {
		w.t.Fatalf("after %s: %d queued, model says %d", did, got, want)
	}
	if got, want := w.fast.Closed(w.running), w.slow.closed(w.running); got != want {
		w.t.Fatalf("after %s: closed tiers %07b, model says %07b", did, got, want)
	}
	if got, want := w.fast.Eligible(), w.slow.eligible(); got != want {
		w.t.Fatalf("after %s: eligible tiers %07b, model says %07b", did, got, want)
	}
	if got, want := w.fast.Keys().Held(), w.slow.heldByKey(); got != want {
		w.t.Fatalf("after %s: keys hold %d entries, model says %d", did, got, want)
	}
	for _, key := range keys[2:] {
		if got, want := w.fast.Keys().Blocked(key), w.slow.blocked[key]; got != want {
			w.t.Fatalf("after %s: key %q blocked: %v, model says %v", did, key, got, want)
		}
		if got, want := w.fast.Keys().HasRoom(key), !w.slow.held(key); got != want {
			w.t.Fatalf("after %s: key %q has room: %v, model says %v", did, key, got, want)
		}
		if got, want := w.fast.Keys().Running(key), w.slow.keyRuns[key]; got != want {
			w.t.Fatalf("after %s: %d of key %q run, model says %d", did, got, key, want)
		}
	}
}

// A million random operations of thirteen kinds give the same decisions as the
// model, and no invariant is broken after any of them.
func TestModel_BacklogMatchesReference(t *testing.T) {
	const worlds, steps = 60, 5000
	first := seeded.Seed(t)
	for i := range uint64(worlds) {
		rnd := rand.New(rand.NewPCG(first+i, 0))
		cfg := backlog.Config{
			Max: 1 + rnd.IntN(10), Caps: randomCaps(rnd), PerKey: rnd.IntN(3),
			Share:        func(key string) int { return int(key[0]-'a')%3 + 1 },
			SharedLimits: make(map[string]int),
		}
		w := &world{
			t: t, rnd: rnd, cfg: cfg, fast: backlog.New[int](cfg), slow: newModel(cfg),
			classes: 1 + (classes-1)*int(i%2), entries: map[int]*backlog.Entry[int]{},
		}
		w.serve(true)
		if i%3 == 0 {
			w.fast.ComeFar(rnd.Uint64N(1 << 30))
		}
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
	w.cfg.Max, w.cfg.PerKey, w.cfg.KeyLimits = max(w.cfg.Max, w.heaviest(), 1), 0, nil
	w.fast.Bounds().SetMax(w.cfg.Max)
	clear(w.cfg.SharedLimits) // before SetLimits reviews the keys: a shared limit holds where no other does
	w.fast.Keys().SetLimits(0, nil)
	for _, key := range keys {
		w.fast.Keys().Unblock(key, ^backlog.Cause(0))
		delete(w.slow.blocked, key)
	}
	w.slow.cfg = w.cfg
	w.slow.caps = backlog.Resolve(w.cfg.Max, w.cfg.Caps)
	w.slow.readmit()
	w.serve(true)
	for len(w.runs) > 0 {
		w.check(w.finish())
	}
	if w.fast.Len() != 0 || w.running != 0 || w.fast.Keys().Len() != 0 {
		w.t.Fatalf("drained: %d queued, %d slots in use, %d keys", w.fast.Len(), w.running, w.fast.Keys().Len())
	}
}
