package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// The queues, kinds and keys of every world.
var (
	queueNames = []string{"mail", "video"}
	kindNames  = []string{"a", "b", "c"}
	keyNames   = []string{"", "", "ann", "bob"}
)

// world has all processes, the store and its disk, for one seed.
type world struct {
	seed  uint64
	rng   *rand.Rand
	begun time.Time
	ctx   context.Context //nolint:containedctx // the parent of all contexts
	end   context.CancelFunc

	// What differs from world to world.
	lease, poll, grace time.Duration
	slow               time.Duration // the longest duration of a call
	faults             int           // of a thousand calls

	disk     *disk
	drive    *drive
	store    queue.Store // nil while it is closed
	ill      bool        // the store has met a flaw of its disk, and accepts no more calls
	epoch    uint32
	power    bool            // how long the store has been closed
	gone     context.Context //nolint:containedctx // of the store: it ends with the store
	unwatch  context.CancelFunc
	signals  map[string]<-chan struct{} // of the store, by queue
	gate     *gate
	hosts    []*host
	nodes    []*node
	client   *node // the node that submits and commands
	workers  int
	checker  *checker
	scenario *scenario
	calm     bool // there are no more faults

	running sync.WaitGroup // goroutines that the world has started
	over    chan struct{}  // closed at the end of the simulation

	// What has happened in a step.
	mu     sync.Mutex
	made   []*call
	events []queue.Event
	notes  []func()
	ears   []*ear // listeners of queues

	history strings.Builder
	steps   int
	broken  error
}

// newWorld returns the world of a seed. The caller must be in the bubble.
func newWorld(ctx context.Context, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &world{
		seed: seed, rng: rng, begun: time.Now(), gate: newGate(), over: make(chan struct{}),
		signals: make(map[string]<-chan struct{}),
		disk:    &disk{rows: make(map[string][]byte), entries: make(map[int]machine.LeaseEntry)},
	}
	w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	// No value is a multiple of another one: two timers with the same time fire in any
	// order.
	w.lease = pick(rng, 10*time.Second, 30*time.Second) + upTo(rng, time.Second)
	w.poll = pick(rng, time.Second, 4*time.Second, time.Minute) + upTo(rng, time.Second)
	w.grace = pick(rng, time.Second, 20*time.Second) + upTo(rng, time.Second)
	w.slow = pick(rng, time.Millisecond, 100*time.Millisecond, 3*time.Second)
	w.faults = pick(rng, 0, 20, 100)
	w.checker = newChecker(w)
	w.openStore() //nolint:contextcheck // the lock is the world's
	w.client = w.newHost(1, stint.Config{}).newQueue(nil)
	w.client.name = "client"
	w.scenario = newScenario(w) //nolint:contextcheck // the caller holds it
	return w
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func (w *world) now() time.Time { return time.Now() }

// chance is true once in n times.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// log writes a line of the history: the time, the number of steps, and a text. Only the
// world's own goroutine calls it, because the order of lines is a part of the history.
func (w *world) log(format string, values ...any) {
	fmt.Fprintf(&w.history, "%14s %5d  %s\n", w.now().Sub(w.begun), w.steps, fmt.Sprintf(format, values...))
}

// note makes the checker run a function when the step has ended.
func (w *world) note(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, fn)
}

// fail ends the simulation.
func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken == nil {
		w.broken = err
	}
}

// openStore opens the store on what the disk has.
func (w *world) openStore() {
	w.epoch++
	w.drive = &drive{disk: w.disk}
	m, err := machine.Open(w.drive, machine.Config{Epoch: w.epoch, Leases: w.drive})
	if errors.Is(err, errDisk) { // a fault that no batch had met before; it is met once
		w.log("the store does not open at first: %v", err)
		w.openStore()
		return
	}
	if err != nil {
		w.fail(fmt.Errorf("the store does not open: %w", err))
		return
	}
	w.store = m
	for _, name := range queueNames {
		w.signals[name], _ = m.Listen(name) // lives as long as the store
	}
	w.gone, w.unwatch = context.WithCancel(w.ctx)
	ctx := w.gone
	w.running.Go(func() {
		_ = m.Watch(ctx, func() {}, func(e queue.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		})
	})
	synctest.Wait()
}

// crashStore ends the store without closing it. Batches that were not written are lost and,
// after a loss of power, perhaps entries of the lease log too.
func (w *world) crashStore(power bool) {
	w.drive.gone = true
	w.unwatch()
	w.checker.deaf()
	w.store, w.ill = nil, false
	if power {
		w.disk.forget(func() bool { return w.chance(2) })
	}
	w.power = w.power || power
	synctest.Wait()
}

// reopenStore opens the store again, and checks what it has.
func (w *world) reopenStore() {
	w.openStore()
	if w.store == nil {
		return
	}
	found, err := w.everything()
	if err != nil {
		w.fail(fmt.Errorf("find tasks after a crash: %w", err))
		return
	}
	w.checker.reopened(found)
	if schedules, err := w.store.Schedules(w.ctx); err != nil {
		w.fail(fmt.Errorf("read schedules after a crash: %w", err))
	} else {
		w.checker.listed(schedules)
	}
	w.power = false
	w.signal(queueNames...) // a new connection signals them
	synctest.Wait()
}

// everything returns all tasks of the store.
func (w *world) everything() ([]queue.Task, error) {
	var all []queue.Task
	for page := (queue.Page{Limit: 1000}); ; {
		found, err := w.store.Find(w.ctx, queue.Filter{}, page)
		all = append(all, found...)
		if err != nil || len(found) < page.Limit {
			return all, err
		}
		page.After = found[len(found)-1].ID
	}
}

// run runs the world to its end, and returns the failure.
func (w *world) run() error {
	for w.broken == nil && !w.scenario.done {
		w.quiet()
		if w.broken != nil || w.step() {
			continue
		}
		w.scenario.act()
	}
	w.finish()
	return w.broken
}

// quiet waits until no goroutine runs, and checks what has happened.
func (w *world) quiet() {
	for moved := true; moved && w.broken == nil; {
		synctest.Wait()
		w.mu.Lock()
		made, events, notes := w.made, w.events, w.notes
		w.made, w.events, w.notes = nil, nil, nil
		w.mu.Unlock()
		if len(made) > 1 {
			w.fail(errors.New("two calls were made in one step"))
		}
		var c *call
		if len(made) > 0 {
			c = made[0]
		}
		w.checker.look(c, events)
		for _, fn := range notes {
			fn()
		}
		moved = w.passSignals()
	}
	w.checker.always()
}

// step lets one request at the gate pass, and reports whether there was one.
func (w *world) step() bool {
	waiting, err := w.gate.all()
	if err != nil {
		w.fail(err)
		return false
	}
	var may []*request
	for _, r := range waiting {
		if !r.seen {
			w.draw(r)
		}
		if from, ok := r.from(); ok && !from.After(w.now()) {
			may = append(may, r)
		}
	}
	if len(may) == 0 {
		return false
	}
	r := may[w.rng.IntN(len(may))]
	f := r.fate
	if r.ctx.Err() != nil && w.chance(2) {
		f = withdrawn
	}
	w.steps++
	w.gate.open(r, f)
	tick(time.Nanosecond) // each step has its own time, so that timers of two steps do not fire together
	return true
}

// tick lets time pass, with all that happens then.
func tick(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// draw draws the fate of a request.
func (w *world) draw(r *request) {
	r.seen = true
	if w.calm {
		return
	}
	if w.chance(4) {
		r.until = w.now().Add(upTo(w.rng, w.slow))
	}
	if w.rng.IntN(1000) < w.faults {
		r.fate = pick(w.rng, before, lost)
	}
	if w.rng.IntN(5000) < w.faults {
		r.until = w.now().Add(upTo(w.rng, 2*w.lease)) // the call hangs
	}
}

// sleep lets time pass until at, or until a request arrives at the gate.
func (w *world) sleep(at time.Time) {
	waiting, _ := w.gate.all()
	for _, r := range waiting {
		if from, ok := r.from(); ok && from.Before(at) {
			at = from
		}
	}
	timer := time.NewTimer(max(at.Sub(w.now()), 0))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.gate.arrived:
	}
}

// finish ends everything. A goroutine that does not end makes the bubble fail.
func (w *world) finish() {
	close(w.over)
	w.gate.close()
	w.end()
	w.running.Wait()
	if w.store != nil {
		_ = w.store.Close()
	}
}
