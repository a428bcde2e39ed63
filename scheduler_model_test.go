package stint_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
)

// actor is a goroutine, or several, that does one piece of work on the real
// scheduler. The play sends it commands, and reads its fields while it waits.
type actor struct {
	*piece
	id     int
	how    string
	view   stint.Scheduler
	cancel context.CancelCauseFunc
	permit stint.Permit               // of TryAcquire
	future *stint.Future[int]         // of a call of Go that has returned
	orders chan func(context.Context) // what the function is to do; closed for it to return

	state  pieceState // as it is seen from outside
	err    error
	ctx    context.Context     //nolint:containedctx // that the function has received
	result error               // that the function returns
	waits  *stint.Promise[int] // that the function waits for, if it suspends its slots for that
}

// body is the function that runs on the actor's slots.
func (a *actor) body(ctx context.Context) (int, error) {
	a.state, a.ctx = inside, ctx
	for do := range a.orders {
		a.state = suspended
		do(ctx)
		a.state = inside
	}
	a.state = over
	return 0, a.result
}

func (a *actor) isOver(err error) {
	a.state, a.err = over, err
}

// begin asks the scheduler for the slots in the actor's way.
func (a *actor) begin(ctx context.Context) {
	ctx, a.cancel = context.WithCancelCause(ctx)
	switch a.how {
	case "acquire":
		p, err := a.view.Acquire(ctx)
		if err != nil {
			a.isOver(err)
			return
		}
		_, _ = a.body(context.Background()) // which cannot call anything within a slot
		p.Release()
	case "run", "nested":
		_, err := stint.Run(ctx, a.view, a.body)
		a.isOver(err)
	case "go":
		f := a.submit(ctx)
		if a.future = f; a.id%2 == 0 {
			a.cancel = f.Cancel
		}
		_, err := f.Wait(context.Background())
		a.isOver(err)
	case "await":
		_, err := a.submit(ctx).Wait(ctx)
		a.isOver(err)
	case "group":
		g := stint.NewGroup(ctx, a.view)
		if a.id%2 == 0 {
			a.cancel = g.Cancel
		}
		g.Go(func(ctx context.Context) error {
			_, err := a.body(ctx)
			return err
		})
		a.isOver(g.Wait())
	}
}

// submit submits the actor's function in one of two ways.
func (a *actor) submit(ctx context.Context) *stint.Future[int] {
	if a.id%3 == 0 {
		return stint.GoWith(ctx, a.view, func(ctx context.Context, a *actor) (int, error) { return a.body(ctx) }, a)
	}
	return stint.Go(ctx, a.view, a.body)
}

// play is a run of random operations on a scheduler and on its model.
type play struct {
	t      *testing.T
	rnd    *rand.Rand
	s      stint.Scheduler
	m      *schedulerModel
	actors []*actor // that are not over
	made   int
	slots  int // in use after the last step
	keys   []string
	heavy  int // the largest weight
	counts map[string]int
	idle   []*idleWait
	// Limits and caps hold work back: see isAwaited.
	holdsBack bool
	// There are no keys, so the bound on the number of turns that an entry waits
	// can be checked.
	bounded bool
}

func newPlay(t *testing.T, rnd *rand.Rand) *play {
	t.Helper()
	p := &play{t: t, rnd: rnd, holdsBack: true, m: newSchedulerModel(1 + rnd.IntN(6)), counts: map[string]int{}, heavy: 1}
	p.keys = []string{""}
	cfg := stint.Config{Share: share, Holders: rnd.IntN(3) == 0}
	if rnd.IntN(3) > 0 {
		p.keys = []string{"", "a", "b", "c", "a", "b"}
		cfg.PerKey = rnd.IntN(4)
	} else {
		p.bounded = true
	}
	if rnd.IntN(2) > 0 {
		p.heavy = 3
	}
	if n := rnd.IntN(5); n < 2 {
		cfg.Queue, cfg.WhenFull = 1+rnd.IntN(8), stint.Refuse
		if n == 1 {
			cfg.WhenFull, p.m.submitters = stint.Block, newSchedulerModel(cfg.Queue)
			p.m.submitters.holdsBlocked = true
		}
	}
	cfg.Caps = p.randomCaps()
	p.m.perKey, p.m.bound = cfg.PerKey, cfg.Queue
	p.s = stint.New(p.m.limit, cfg)
	return p
}

// randomCaps sets the model's caps and returns them.
func (p *play) randomCaps() stint.Caps {
	least := 1
	for i := range p.m.caps {
		p.m.caps[i] = 0
		if p.rnd.IntN(3) > 0 {
			continue
		}
		least += p.rnd.IntN(3)
		p.m.caps[i] = least
	}
	c := p.m.caps
	return stint.Caps{
		Lowest: c[0], Lower: c[1], Low: c[2], Normal: c[3], High: c[4], Higher: c[5], Highest: c[6],
	}
}

// jobs are the kinds of actors that run in goroutines of the scheduler.
var jobs = []string{"go", "group", "await", "trygo", "then", "catch"}

func (p *play) newActor(how string) *actor {
	p.made++
	l := fifo{tier: p.rnd.IntN(stint.Tiers), key: p.keys[p.rnd.IntN(len(p.keys))]}
	if p.rnd.IntN(2) == 0 {
		l.tier = 3
	}
	a := &actor{
		piece: &piece{fifo: l, weight: 1, job: slices.Contains(jobs, how)}, id: p.made, how: how,
		orders: make(chan func(context.Context)),
	}
	if p.rnd.IntN(4) == 0 {
		a.weight = 1 + p.rnd.IntN(p.heavy)
	}
	a.view = p.s.At(stint.Priority(l.tier) + stint.Lowest).Key(l.key).Weight(a.weight)
	p.actors = append(p.actors, a)
	return a
}

// pick returns an actor for which ok holds in the model, or nil.
func (p *play) pick(ok func(a *actor) bool) *actor {
	var fit []*actor
	for _, a := range p.actors {
		if ok(a) {
			fit = append(fit, a)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[p.rnd.IntN(len(fit))]
}

func (p *play) arrive(how string) {
	a := p.newActor(how)
	go a.begin(p.t.Context())
	p.m.arrive(a.piece)
}

func (p *play) try() {
	a := p.newActor("try")
	var ok bool
	a.permit, ok = a.view.TryAcquire(p.t.Context())
	want := p.m.refusal(a.piece) == nil && p.m.admits(a.piece)
	if ok != want {
		p.t.Fatalf("TryAcquire() = %t, want %t\n%s", ok, want, p)
	}
	if ok {
		a.state = inside
		p.m.enter(a.piece)
	} else {
		a.state, a.piece.state = over, over
	}
	p.m.look(a.piece)
}

// isAwaited reports whether the end of an actor is an event for others, besides its slots. If its end
// starts several jobs, because its key has room again or it is the guard's turn, how many of them have
// started before that event depends on how soon workers run.
func (a *actor) isAwaited() bool { return a.await || a.follower != nil }

func (p *play) finish() {
	inOrder := !p.holdsBack || !p.jobsWait()
	a := p.pick(func(a *actor) bool { return a.piece.state == inside && (inOrder || !a.isAwaited()) })
	if a == nil {
		return
	}
	if a.how == "try" {
		a.permit.Release()
		a.state = over
	} else {
		if a.future != nil && p.rnd.IntN(3) == 0 {
			a.result, a.piece.err = errFailed, errFailed
		}
		if a.how == "group" && a.id%2 == 0 && a.ended != nil && !errors.Is(a.ended, stint.ErrClosed) {
			a.piece.err = a.ended // it was cancelled, and not only its context
		}
		close(a.orders)
	}
	p.m.finish(a.piece)
}

func (p *play) cancelOne() {
	a := p.pick(func(a *actor) bool { return a.waitsForSlots() && (a.parent == nil || a.weight == 1) })
	if a == nil {
		return
	}
	a.cancel(errAsked)
	itself := func(q *piece) error {
		if q == a.piece {
			return errAsked
		}
		return nil
	}
	p.m.refuseSubmitters(itself)
	p.m.withdraw(itself)
}

// move gives a queued function another tier.
func (p *play) move() {
	a := p.pick(func(a *actor) bool { return a.waitsForSlots() && a.future != nil })
	if a == nil {
		return
	}
	tier := p.rnd.IntN(stint.Tiers)
	if !a.future.SetPriority(stint.Priority(tier) + stint.Lowest) {
		p.t.Fatalf("SetPriority of a function that is queued = false\n%s", p)
	}
	p.m.move(a.piece, tier)
}

// call has a function call another on a slot of its own scheduler.
func (p *play) call() {
	parent := p.pick((*actor).runsAFunction)
	if parent == nil {
		return
	}
	a := p.newActor("nested")
	if parent.ended != nil { // its context has ended
		a.piece.state, a.piece.err = over, parent.ended
		parent.orders <- a.begin
		return
	}
	if p.m.tooMuch(a.piece) != nil || p.m.bound > 0 || p.jobsWait() {
		// The slots are handed straight down. Otherwise jobs may start before the call
		// waits, and how many of them depends on how soon their workers run.
		a.key, a.weight = "", 1
		a.view = p.s.At(stint.Priority(a.tier) + stint.Lowest)
	}
	parent.orders <- a.begin
	p.m.nest(parent.piece, a.piece)
}

func (p *play) jobsWait() bool {
	return nil != p.pick(func(a *actor) bool {
		return a.waitsForSlots() && a.job
	})
}

// waitsForSlots reports whether the actor is in the queue, or waits for room in it.
func (a *actor) waitsForSlots() bool { return a.piece.state == queued && a.follows == nil }

// runsAFunction reports whether the actor is a function that has its slots.
func (a *actor) runsAFunction() bool {
	return a.piece.state == inside && a.how != "try" && a.how != "acquire"
}

// nestedQueued is how many queued pieces were called by a function. When more
// than one of them is answered, the functions want their slots back in an
// unspecified order; and when one of several slots is answered, other entries of the
// queue start at the same time.
func (p *play) nestedQueued() (n int) {
	for _, q := range p.m.waiting {
		if q.parent != nil {
			n++
		}
	}
	return n
}

func (p *play) clear() {
	if p.nestedQueued() > 1 {
		return
	}
	got, want := p.s.Clear(), p.m.withdraw(func(*piece) error { return stint.ErrCleared })
	if got != want {
		p.t.Fatalf("Clear() = %d, want %d", got, want)
	}
}

func (p *play) resize() {
	if p.nestedQueued() > 0 {
		return
	}
	p.m.limit = p.rnd.IntN(8)
	p.s.Resize(p.m.limit)
	p.m.refuseSubmitters(p.m.tooMuch)
	p.m.withdraw(p.m.tooMuch)
}

func (p *play) setCaps() {
	p.s.SetCaps(p.randomCaps())
	p.m.dispatch(false)
}

func (p *play) setPerKey() {
	p.m.perKey = p.rnd.IntN(4)
	p.s.SetPerKey(p.m.perKey)
	p.m.setAside()
	p.m.dispatch(false)
}

func (p *play) pause() {
	p.m.paused = !p.m.paused
	if p.m.paused {
		p.s.Pause("the model")
		return
	}
	p.s.Resume()
	p.m.dispatch(false)
}

// operations are what may happen, each as often as its weight says.
var operations = []struct {
	name   string
	weight int
	do     func(p *play)
}{
	{"acquire", 8, func(p *play) { p.arrive("acquire") }},
	{"run", 5, func(p *play) { p.arrive("run") }},
	{"go", 8, func(p *play) { p.arrive("go") }},
	{"group", 5, func(p *play) { p.arrive("group") }},
	{"try", 6, (*play).try},
	{"trygo", 5, (*play).tryGo},
	{"continue", 5, (*play).follow},
	{"suspend", 4, (*play).suspend},
	{"resolve", 8, (*play).resolve},
	{"await", 4, (*play).await},
	{"end", 2, (*play).endContext},
	{"idle", 1, (*play).waitIdle},
	{"why", 4, (*play).why},
	{"finish", 34, (*play).finish},
	{"cancel", 6, (*play).cancelOne},
	{"call", 8, (*play).call},
	{"move", 6, (*play).move},
	{"caps", 2, (*play).setCaps},
	{"per key", 1, (*play).setPerKey},
	{"pause", 2, (*play).pause},
	{"resize", 1, (*play).resize},
	{"clear", 1, (*play).clear},
}

// step does one operation on both and compares what has become of all.
func (p *play) step() {
	total := 0
	for _, op := range operations {
		total += op.weight
	}
	n := p.rnd.IntN(total)
	for _, op := range operations {
		if n -= op.weight; n < 0 {
			p.counts[op.name]++
			op.do(p)
			p.compare(op.name)
			return
		}
	}
}

// compare checks that every actor is where the model says it is, and what must
// hold whatever happened.
func (p *play) compare(after string) {
	p.t.Helper()
	synctest.Wait()
	for _, a := range p.actors {
		if a.comesBack() {
			continue
		}
		if a.state != a.piece.state || !errors.Is(a.err, a.piece.err) {
			p.t.Fatalf("after %s: %s %d of tier %d, key %q, weight %d is in state %d with error %v; want %d, %v\n%s",
				after, a.how, a.id, a.tier, a.key, a.weight, a.state, a.err, a.piece.state, a.piece.err, p)
		}
	}
	p.actors = slices.DeleteFunc(p.actors, func(a *actor) bool { return a.state == over && !a.comesBack() })
	p.compareWaiting(after)
	p.compareIdle(after)
	p.compareContexts(after)
	st := p.s.Stats()
	var byTier [stint.Tiers]int
	for _, q := range p.m.waiting {
		byTier[q.tier]++
	}
	if st.Running != p.m.running || st.Queued != len(p.m.waiting) || st.QueuedBy != byTier || st.Limit != p.m.limit ||
		st.Paused != p.m.paused || st.Closed != p.m.closed || st.PerKey != p.m.perKey || st.Blocked != p.m.blocked() {
		p.t.Fatalf("after %s: %+v\n%s", after, st, p)
	}
	p.invariants(after)
}

// comesBack reports whether the actor's piece is over but its call has not
// returned, because the function that made it has not got its slots back.
func (a *actor) comesBack() bool {
	return a.piece.state == over && a.parent != nil && a.parent.state == suspended
}

// invariants checks what follows from the documentation without the model's
// way of deciding.
func (p *play) invariants(after string) {
	p.t.Helper()
	slots, holders := 0, 0
	for _, a := range p.actors {
		if a.state == inside {
			slots += a.weight
			holders++
		}
		// In a tier without keys an entry with n before it starts after at most
		// 56·(n+1) turns.
		if p.bounded && a.piece.state == queued && a.turns > 56*(a.ahead+1) {
			p.t.Fatalf("after %s: %s %d has waited %d turns with %d ahead", after, a.how, a.id, a.turns, a.ahead)
		}
	}
	if slots != p.m.running {
		p.t.Fatalf("after %s: %d slots in use, Stats says %d", after, slots, p.m.running)
	}
	// The limit may be lowered below what runs, but it is never passed upwards,
	// except by a function that was heavier than that already and runs alone.
	if slots > p.slots && slots > p.m.limit && holders > 1 {
		p.t.Fatalf("after %s: %d slots in use of %d, %d before", after, slots, p.m.limit, p.slots)
	}
	p.slots = slots
}

func (p *play) String() string {
	text := fmt.Sprintf("limit %d, caps %v, per key %d, turn %d, %d in use\n",
		p.m.limit, p.m.caps, p.m.perKey, p.m.turn, p.m.running)
	for _, a := range p.actors {
		text += fmt.Sprintf("%3d %s tier %d key %q weight %d: %d, want %d\n",
			a.id, a.how, a.tier, a.key, a.weight, a.state, a.piece.state)
	}
	return text
}

// finishAll lets everything come to its end, and sees that nothing is left.
func (p *play) finishAll() {
	if p.m.paused {
		p.pause()
		p.compare("the last resume")
	}
	p.m.limit = max(p.m.limit, 3)
	p.s.Resize(p.m.limit)
	p.m.dispatch(false)
	p.compare("the last resize")
	p.m.caps = [stint.Tiers]int{}
	p.s.SetCaps(stint.Caps{})
	p.m.dispatch(false)
	p.compare("the last change of caps")
	p.m.perKey = 0
	p.s.SetPerKey(0)
	p.m.setAside()
	p.m.dispatch(false)
	p.compare("the last change of the limit per key")
	p.holdsBack = false
	for len(p.actors) > 0 {
		if p.pick(func(a *actor) bool { return a.piece.state == inside || a.waits != nil }) == nil {
			p.t.Fatalf("nothing is inside, and %d are left\n%s", len(p.actors), p)
		}
		p.resolve()
		p.compare("resolve")
		p.finish()
		p.compare("finish")
	}
	p.compareIdle("the end")
	if !p.m.closed {
		wantAllFree(p.t, p.s)
	}
}

func TestModel_SchedulerMatchesReference(t *testing.T) {
	const plays, steps = 80, 1000
	rnd := rand.New(rand.NewPCG(seeded.Seed(t), 1))
	counts := map[string]int{}
	for range plays {
		synctest.Test(t, func(t *testing.T) {
			p := newPlay(t, rnd)
			for range steps {
				p.step()
			}
			p.end()
			for range steps / 10 {
				p.step()
			}
			p.finishAll()
			for name, n := range p.counts {
				counts[name] += n
			}
		})
	}
	t.Logf("operations: %v", counts)
}
