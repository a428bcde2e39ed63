package backlog_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/internal/seeded"
)

// pieces is the run of one tier as its caller keeps it.
type pieceRun struct {
	run  backlog.Run[int] // stands for all
	list []*modelEntry
	n    int // their number, as the backlog reads it
}

// runWorld is a backlog with runs, the model, and what runs.
type runWorld struct {
	t       *testing.T
	rnd     *rand.Rand
	cfg     backlog.Config
	fast    *backlog.Backlog[int]
	slow    *runModel
	runs    [backlog.Tiers]pieceRun
	keyed   map[int]*backlog.Entry[int]
	running int
	active  []run
	lastID  int
	many    int // starts that were passed to StartMany
}

func newRunWorld(t *testing.T, rnd *rand.Rand, cfg backlog.Config) *runWorld {
	t.Helper()
	return &runWorld{
		t: t, rnd: rnd, cfg: cfg, fast: backlog.New[int](cfg), slow: newRunModel(cfg), keyed: map[int]*backlog.Entry[int]{},
	}
}

// push queues work in both.
func (w *runWorld) push(tier int, key string, weight int) (id int) {
	w.lastID++
	id = w.lastID
	queue, ticket := queueName{tier, key, 0}, uint64(id)
	w.slow.push(id, queue, weight, ticket)
	if key != "" {
		e := &backlog.Entry[int]{Value: id}
		w.keyed[id] = e
		w.fast.PushAt(e, backlog.Arrival{Tier: int8(tier), Key: key, Weight: int32(weight)}, ticket)
		return id
	}
	r := &w.runs[tier]
	r.list = append(r.list, &modelEntry{id: id, queue: queue, weight: weight, ticket: ticket})
	if r.n = len(r.list); r.n == 1 {
		r.run.PushTo(w.fast, backlog.Arrival{Tier: int8(tier), Weight: int32(weight)}, ticket, &r.n)
	}
	return id
}

// peek returns what starts next in both, which must be the same.
func (w *runWorld) peek() *modelEntry {
	e, m := w.fast.Peek(w.running), w.slow.peek(w.running, everyClass)
	got := 0
	if e != nil {
		got = e.Value
		if e.Key() == "" {
			got = w.runs[e.Tier()].list[0].id
		}
	}
	if want := idOf(m); got != want {
		w.t.Fatalf("with %d running, next is %d, model says %d", w.running, got, want)
	}
	if m != nil && (e.Tier() != m.queue.tier || e.Key() != m.queue.key ||
		e.Weight() != m.weight || e.Ticket() != m.ticket) {
		w.t.Fatalf("next is tier %d key %q weight %d ticket %d, model says %+v", e.Tier(), e.Key(), e.Weight(), e.Ticket(), m)
	}
	return m
}

func idOf(m *modelEntry) int {
	if m == nil {
		return 0
	}
	return m.id
}

// start starts what peek has returned.
func (w *runWorld) start(m *modelEntry) {
	w.slow.start(m)
	w.begin(m)
	if m.queue.key != "" {
		w.fast.Start(w.keyed[m.id])
		delete(w.keyed, m.id)
		return
	}
	r := &w.runs[m.queue.tier]
	r.drop(0)
	if r.n == 0 {
		w.fast.Start(&r.run.Entry)
	} else {
		r.run.StartFirst(r.list[0].weight, r.list[0].ticket)
	}
}

func (r *pieceRun) drop(i int) {
	r.list = slices.Delete(r.list, i, i+1)
	r.n = len(r.list)
}

func (w *runWorld) begin(m *modelEntry) {
	w.running += m.weight
	w.active = append(w.active, run{m.id, m.queue, m.weight, m.ticket})
	if w.running > w.cfg.Max {
		w.t.Fatalf("%d slots in use, the maximum is %d", w.running, w.cfg.Max)
	}
}

func (w *runWorld) dispatch() (started int) {
	for m := w.peek(); m != nil; m = w.peek() {
		w.start(m)
		started++
	}
	return started
}

func (w *runWorld) finishOne() {
	i := w.rnd.IntN(len(w.active))
	r := w.active[i]
	w.active = slices.Delete(w.active, i, i+1)
	w.running -= r.weight
	w.fast.Keys().Finish(r.queue.key)
	w.slow.finish(r.queue.key)
}

func (w *runWorld) step() string {
	switch w.rnd.IntN(16) {
	case 0, 1, 2:
		return w.arrive(1)
	case 3:
		return w.arrive(1 + w.rnd.IntN(4))
	case 4, 5, 6:
		return w.finish()
	case 7, 8:
		return w.cancel()
	case 9:
		return w.limits()
	case 10:
		return w.block()
	case 11, 12:
		return w.burst()
	case 13:
		return w.empty()
	default:
		return w.startMany()
	}
}

func (w *runWorld) arrive(weight int) string {
	if w.fast.Len() > 40 {
		return w.finish() // the model scans
	}
	tier, key := w.rnd.IntN(backlog.Tiers), keys[w.rnd.IntN(len(keys))]
	if w.rnd.IntN(3) > 0 {
		tier = 3 + w.rnd.IntN(2) // so that keys and a run meet in one tier
	}
	if w.cfg.Max > 0 {
		weight = min(weight, w.cfg.Max)
	}
	got, want := w.fast.Admits(tier, key, weight, w.running), w.slow.admits(tier, key, weight, w.running)
	if got != want {
		w.t.Fatalf("arrival in tier %d with key %q and weight %d admitted: %v, model says %v", tier, key, weight, got, want)
	}
	if got && w.rnd.IntN(2) == 0 {
		w.lastID++
		w.fast.Keys().Admit(key)
		w.slow.run(key)
		w.begin(&modelEntry{id: w.lastID, queue: queueName{tier, key, 0}, weight: weight})
		return fmt.Sprintf("admit %d", w.lastID)
	}
	id := w.push(tier, key, weight)
	if got {
		w.dispatch()
	}
	return fmt.Sprintf("push %d tier %d key %q weight %d", id, tier, key, weight)
}

func (w *runWorld) finish() string {
	if len(w.active) == 0 {
		return "nothing to finish"
	}
	w.finishOne()
	if w.dispatch() == 0 {
		w.fast.Pass(w.running)
		w.slow.pass(w.running, everyClass)
	}
	return "finish"
}

// cancel takes out a keyed entry, or the first, the last or any piece of a run.
func (w *runWorld) cancel() string {
	all := w.slow.all()
	if len(all) == 0 {
		return "nothing to cancel"
	}
	m := all[w.rnd.IntN(len(all))]
	if r := &w.runs[m.queue.tier]; m.queue.key == "" {
		switch w.rnd.IntN(3) {
		case 0:
			m = r.list[0]
		case 1:
			m = r.list[len(r.list)-1]
		}
	}
	w.leave(m)
	w.dispatch()
	return fmt.Sprintf("cancel %d", m.id)
}

func (w *runWorld) leave(m *modelEntry) {
	w.slow.remove(m.id)
	if m.queue.key != "" {
		if !w.fast.Remove(w.keyed[m.id]) {
			w.t.Fatalf("entry %d is not queued", m.id)
		}
		delete(w.keyed, m.id)
		return
	}
	r := &w.runs[m.queue.tier]
	i := slices.IndexFunc(r.list, func(x *modelEntry) bool { return x.id == m.id })
	r.drop(i)
	switch {
	case r.n == 0:
		if !w.fast.Remove(&r.run.Entry) {
			w.t.Fatalf("the run of tier %d is not queued", m.queue.tier)
		}
	case i == 0:
		r.run.DropFirst(r.list[0].weight, r.list[0].ticket)
	}
}

// limits changes the maximum, the caps, or the limits of keys.
func (w *runWorld) limits() string {
	switch w.rnd.IntN(4) {
	case 0:
		w.cfg.Max = max(w.rnd.IntN(15), w.heaviest())
		w.fast.Bounds().SetMax(w.cfg.Max)
	case 1:
		w.cfg.Caps = randomCaps(w.rnd)
		w.fast.Bounds().SetCaps(w.cfg.Caps)
	case 2:
		w.cfg.Caps = [backlog.Tiers]int{}
		w.fast.Bounds().SetCaps(w.cfg.Caps)
	default:
		w.cfg.PerKey = w.rnd.IntN(4)
		w.fast.Keys().SetPerKey(w.cfg.PerKey)
	}
	w.slow.cfg.Max, w.slow.cfg.PerKey = w.cfg.Max, w.cfg.PerKey
	w.slow.caps = backlog.Resolve(w.cfg.Max, w.cfg.Caps)
	for _, key := range keys {
		w.slow.setAside(key)
	}
	w.slow.readmit()
	w.dispatch()
	return fmt.Sprintf("limits %+v", w.cfg)
}

func (w *runWorld) heaviest() (weight int) {
	for _, e := range w.slow.all() {
		weight = max(weight, e.weight)
	}
	return weight
}

func (w *runWorld) block() string {
	key := keys[2+w.rnd.IntN(len(keys)-2)]
	is := w.slow.blocked[key] ^ 1
	if is != 0 {
		w.fast.Keys().Block(key, 1)
	} else {
		w.fast.Keys().Unblock(key, 1)
	}
	w.slow.block(key, is)
	w.dispatch()
	return fmt.Sprintf("block %q: %v", key, is)
}

func (w *runWorld) burst() string {
	if w.fast.Len() > 24 {
		return "enough queued"
	}
	tier := 3 + w.rnd.IntN(2)
	for range 1 + w.rnd.IntN(8) {
		w.push(tier, "", 1)
	}
	w.dispatch()
	return "burst"
}

// empty takes out all but one run, so that it is alone, sometimes.
func (w *runWorld) empty() string {
	if w.rnd.IntN(3) > 0 {
		return "not emptied"
	}
	for _, m := range w.slow.all() {
		if m.queue.key != "" || m.queue.tier != 3 {
			w.leave(m)
		}
	}
	for range w.rnd.IntN(12) {
		w.push(3, "", 1)
	}
	w.dispatch()
	return "emptied"
}

// startMany starts and finishes pieces of a run that is alone, and passes all starts to
// StartMany at once. The model makes them one by one.
func (w *runWorld) startMany() string {
	tier := w.fast.Alone()
	if tier < 0 || w.cfg.Max == 0 {
		return "none is alone that may start"
	}
	r := &w.runs[tier]
	n := uint64(0)
	for range 1 + w.rnd.IntN(150) {
		switch {
		case w.rnd.IntN(3) == 0 && r.n < 20:
			w.lastID++
			m := &modelEntry{id: w.lastID, queue: queueName{tier, "", 0}, weight: 1, ticket: uint64(w.lastID)}
			w.slow.push(m.id, m.queue, 1, m.ticket)
			r.list = append(r.list, m)
			r.n = len(r.list)
		case w.running >= w.cfg.Max:
			w.finishOne()
		case r.n > 1 && r.list[0].weight == 1:
			m := w.slow.peek(w.running, everyClass)
			if idOf(m) != r.list[0].id {
				w.t.Fatalf("the run of tier %d is alone, and item %d is next", tier, idOf(m))
			}
			w.slow.start(m)
			w.begin(m)
			r.drop(0)
			n++
		}
	}
	if n > 0 {
		r.run.StartMany(n, r.list[0].weight, r.list[0].ticket)
		w.many += int(n)
	}
	w.check("starting many")
	w.dispatch()
	return fmt.Sprintf("start %d of tier %d", n, tier)
}

func (w *runWorld) check(did string) {
	w.t.Helper()
	w.peek()
	for tier := range backlog.Tiers {
		if got, want := w.fast.LenTier(tier), w.slow.lenTier(tier); got != want {
			w.t.Fatalf("after %s: %d queued in tier %d, model says %d", did, got, tier, want)
		}
	}
	if got, want := w.fast.Len(), len(w.slow.all()); got != want || w.fast.Empty() != (want == 0) {
		w.t.Fatalf("after %s: %d queued (none: %v), model says %d", did, got, w.fast.Empty(), want)
	}
	if got, want := w.fast.Closed(w.running), w.slow.closed(w.running); got != want {
		w.t.Fatalf("after %s: closed tiers %07b, model says %07b", did, got, want)
	}
	if got, want := w.fast.Keys().Held(), w.slow.heldByKey(); got != want {
		w.t.Fatalf("after %s: keys hold %d entries, model says %d", did, got, want)
	}
	if got, want := w.fast.Alone(), w.slow.alone(); got != want {
		w.t.Fatalf("after %s: tier %d is alone, model says %d", did, got, want)
	}
}

// drain finishes everything.
func (w *runWorld) drain() {
	w.cfg.Max, w.cfg.PerKey = max(w.cfg.Max, w.heaviest(), 1), 0
	w.fast.Bounds().SetMax(w.cfg.Max)
	w.fast.Keys().SetPerKey(0)
	w.slow.cfg = w.cfg
	w.slow.caps = backlog.Resolve(w.cfg.Max, w.cfg.Caps)
	for _, key := range keys {
		w.fast.Keys().Unblock(key, 1)
		delete(w.slow.blocked, key)
	}
	w.slow.readmit()
	w.dispatch()
	for len(w.active) > 0 {
		w.check(w.finish())
	}
	if !w.fast.Empty() || w.fast.Len() != 0 || w.fast.Keys().Len() != 0 || w.running != 0 {
		w.t.Fatalf("drained: %d queued, %d keys, %d slots in use", w.fast.Len(), w.fast.Keys().Len(), w.running)
	}
}

func runConfig(rnd *rand.Rand) backlog.Config {
	cfg := backlog.Config{
		Max: 1 + rnd.IntN(10), PerKey: rnd.IntN(3),
		Share: func(key string) int { return int(key[0]-'a')%3 + 1 },
	}
	if rnd.IntN(2) == 0 {
		cfg.Caps = randomCaps(rnd)
	}
	return cfg
}

// Random operations on a backlog with runs give the same decisions as the model.
func TestModel_RunMatchesReference(t *testing.T) {
	const worlds, steps = 40, 3000
	first := seeded.Seed(t)
	many := 0
	for i := range uint64(worlds) {
		rnd := rand.New(rand.NewPCG(first+i, 0))
		w := newRunWorld(t, rnd, runConfig(rnd))
		if i%3 == 0 {
			w.fast.ComeFar(rnd.Uint64N(1 << 30))
		}
		for range steps {
			w.check(w.step())
		}
		w.drain()
		many += w.many
	}
	if many < 3_000 {
		t.Errorf("not tried enough: %d starts by StartMany", many)
	}
}

// StartMany leaves nothing different from as many times StartFirst: not the turn of the guard,
// not the virtual time of the tier or of its keys, not what is remembered of idle keys.
func TestModel_StartManyIsStartFirstRepeated(t *testing.T) {
	const rounds = 500
	first := seeded.Seed(t)
	for i := range uint64(rounds) {
		source := rand.New(rand.NewPCG(first+i, 1))
		cfg := runConfig(source)
		cfg.Caps = [backlog.Tiers]int{}
		n := 1 + source.IntN(120)
		var worlds [2]*runWorld
		for j := range worlds {
			w := newRunWorld(t, rand.New(rand.NewPCG(first+i, 2)), cfg)
			w.before(n)
			w.startAlone(n, j == 0)
			worlds[j] = w
		}
		if a, b := worlds[0].fast.Keys().Len(), worlds[1].fast.Keys().Len(); a != b {
			t.Fatalf("round %d: %d keys are remembered, %d after starts one by one", i, a, b)
		}
		for j := range worlds {
			worlds[j].after()
		}
		if a, b := worlds[0].order(), worlds[1].order(); !slices.Equal(a, b) {
			t.Fatalf("round %d, %d starts: later ones are\n%v, one by one they would be\n%v", i, n, a, b)
		}
	}
}

// before has keys and a run wait and start, until a run of more than n pieces is alone.
func (w *runWorld) before(n int) {
	for range w.rnd.IntN(60) {
		w.push(3+w.rnd.IntN(2), keys[w.rnd.IntN(len(keys))], 1+w.rnd.IntN(2)*w.rnd.IntN(min(w.cfg.Max, 3)))
		if w.rnd.IntN(2) == 0 {
			w.dispatch()
		}
		if len(w.active) > 0 && w.rnd.IntN(2) == 0 {
			w.finish()
		}
	}
	for _, m := range w.slow.all() {
		if m.queue.key != "" || m.queue.tier != 3 || m.weight > 1 {
			w.leave(m)
		}
	}
	for len(w.active) > 0 {
		w.finishOne()
	}
	for w.runs[3].n <= n {
		w.push(3, "", 1)
	}
	if tier := w.fast.Alone(); tier != 3 {
		w.t.Fatalf("tier %d is alone, want 3", tier)
	}
}

// startAlone starts n pieces of the run that is alone. The model is of no use any more.
func (w *runWorld) startAlone(n int, many bool) {
	r := &w.runs[3]
	for range n {
		r.drop(0)
		if !many {
			r.run.StartFirst(r.list[0].weight, r.list[0].ticket)
		}
	}
	if many {
		r.run.StartMany(uint64(n), r.list[0].weight, r.list[0].ticket)
	}
}

// after queues work of known keys and new ones, in all tiers.
func (w *runWorld) after() {
	for i := range 150 {
		tier, key := w.rnd.IntN(backlog.Tiers), keys[w.rnd.IntN(len(keys))]
		if w.rnd.IntN(4) == 0 {
			key = fmt.Sprintf("a%d", i)
		}
		if w.rnd.IntN(2) == 0 {
			tier = 3
		}
		w.push(tier, key, 1+w.rnd.IntN(min(w.cfg.Max, 2)))
	}
}

// order starts all that waits, one after the other, and returns the order.
func (w *runWorld) order() (ids []int) {
	for e := w.fast.Peek(0); e != nil; e = w.fast.Peek(0) {
		key := e.Key()
		if key != "" {
			ids = append(ids, e.Value)
			w.fast.Start(e)
			w.fast.Keys().Finish(key)
			continue
		}
		r := &w.runs[e.Tier()]
		ids = append(ids, r.list[0].id)
		r.drop(0)
		if r.n == 0 {
			w.fast.Start(e)
		} else {
			r.run.StartFirst(r.list[0].weight, r.list[0].ticket)
		}
	}
	if !w.fast.Empty() {
		w.t.Fatalf("%d are left", w.fast.Len())
	}
	return ids
}

// A key that is idle is forgotten when virtual time passes it, also if all that starts is a run.
func TestA5_RunForgetsIdleKeys(t *testing.T) {
	for name, starts := range map[string]func(r *backlog.Run[int]){
		"StartFirst": func(r *backlog.Run[int]) {
			for i := range uint64(3) {
				r.StartFirst(1, 3+i)
			}
		},
		"StartMany": func(r *backlog.Run[int]) { r.StartMany(3, 1, 5) },
	} {
		b := backlog.New[int](backlog.Config{Max: 2})
		var keyed backlog.Entry[int]
		var r backlog.Run[int]
		n := 10
		r.PushTo(b, backlog.Arrival{Tier: 3, Weight: 1}, 1, &n)
		b.PushAt(&keyed, backlog.Arrival{Tier: 3, Key: "a", Weight: 2}, 2)
		n--
		r.StartFirst(1, 3)
		b.Start(&keyed)
		b.Keys().Finish("a")
		if got := b.Keys().Len(); got != 1 {
			t.Errorf("%d keys are remembered before %s, want 1: virtual time has not passed it", got, name)
		}
		n -= 3
		if starts(&r); b.Keys().Len() != 0 {
			t.Errorf("%d keys are remembered after %s", b.Keys().Len(), name)
		}
	}
}
