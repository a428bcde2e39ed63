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

// What there is in every world.
var (
	queueNames = []string{"mail", "video"}
	kindNames  = []string{"a", "b", "c"}
	keyNames   = []string{"", "", "ann", "bob"}
)

// world is all that there is, as one seed has it.
type world struct {
	seed  uint64
	rng   *rand.Rand
	begun time.Time
	ctx   context.Context //nolint:containedctx // of all that the world starts
	end   context.CancelFunc

	// What one world differs from another in.
	lease, poll, grace time.Duration
	slow               time.Duration // how long calls may take
	faults             int           // in a thousand calls

	disk    *disk
	drive   *drive
	store   queue.Store // nil while it is down
	ill     bool        // the store has met a flaw of its disk, and takes nothing more
	epoch   uint32
	power   bool            // has been gone since the store was open
	gone    context.Context //nolint:containedctx // of the store: it ends with that
	unwatch context.CancelFunc
	signals map[string]<-chan struct{} // of the store, by queue
	gate    *gate
	hosts   []*host
	nodes   []*node
	client  *node // who submits and commands
	workers int
	judge   *judge
	plots   *plots
	calm    bool // nothing goes wrong any more

	running sync.WaitGroup // what the world has started
	over    chan struct{}  // closed in the end

	// What has happened in a step.
	mu     sync.Mutex
	made   []*call
	events []queue.Event
	notes  []func()
	ears   []*ear // those who listen to a queue

	history strings.Builder
	steps   int
	broken  error
}

// newWorld returns the world of a seed. It is for the bubble in which it is made.
func newWorld(ctx context.Context, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &world{
		seed: seed, rng: rng, begun: time.Now(), gate: newGate(), over: make(chan struct{}),
		signals: make(map[string]<-chan struct{}),
		disk:    &disk{rows: make(map[string][]byte), starts: make(map[int]machine.LeaseEntry)},
	}
	w.ctx, w.end = context.WithCancel(context.WithoutCancel(ctx))
	// None is a multiple of another: two timers at one time go off in any order.
	w.lease = pick(rng, 10*time.Second, 30*time.Second) + upTo(rng, time.Second)
	w.poll = pick(rng, time.Second, 4*time.Second, time.Minute) + upTo(rng, time.Second)
	w.grace = pick(rng, time.Second, 20*time.Second) + upTo(rng, time.Second)
	w.slow = pick(rng, time.Millisecond, 100*time.Millisecond, 3*time.Second)
	w.faults = pick(rng, 0, 20, 100)
	w.judge = newJudge(w)
	w.openStore() //nolint:contextcheck // it is the world's
	w.client = w.newHost(1, stint.Config{}).newQueue(nil)
	w.client.name = "client"
	w.plots = newPlots(w) //nolint:contextcheck // so it is here
	return w
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func (w *world) now() time.Time { return time.Now() }

// chance is true once in n times.
func (w *world) chance(n int) bool { return w.rng.IntN(n) == 0 }

// log writes a line of the history: when, after how many steps, and what. It is for the world's own goroutine, since
// the order of lines is a part of the history.
func (w *world) log(format string, values ...any) {
	fmt.Fprintf(&w.history, "%14s %5d  %s\n", w.now().Sub(w.begun), w.steps, fmt.Sprintf(format, values...))
}

// note has something looked at when the step is over.
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
	if err != nil {
		w.fail(fmt.Errorf("the store does not open: %w", err))
		return
	}
	w.store = m
	for _, name := range queueNames {
		w.signals[name], _ = m.Listen(name) // for as long as there is the store
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
	w.judge.deaf()
	w.store, w.ill = nil, false
	if power {
		w.disk.forget(func() bool { return w.chance(2) })
	}
	w.power = w.power || power
	synctest.Wait()
}

// reopenStore opens it again, and has the judge look at what it finds.
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
	w.judge.reopened(found)
	if schedules, err := w.store.Schedules(w.ctx); err != nil {
		w.fail(fmt.Errorf("read schedules after a crash: %w", err))
	} else {
		w.judge.listed(schedules)
	}
	w.power = false
	w.signal(queueNames...) // they see the connection come back
	synctest.Wait()
}

// everything is all that the store has.
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

// run lets the world take its course, and returns what broke.
func (w *world) run() error {
	for w.broken == nil && !w.plots.done {
		w.quiet()
		if w.broken != nil || w.step() {
			continue
		}
		w.plots.act()
	}
	w.finish()
	return w.broken
}

// quiet waits until nothing moves, and looks at what has happened.
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
		w.judge.look(c, events)
		for _, fn := range notes {
			fn()
		}
		moved = w.passSignals()
	}
	w.judge.always()
}

// step lets one of those through that wait at the gate, and reports whether one
// could be.
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
	tick(time.Nanosecond) // each step has a time of its own, and timers that two set do not go off together
	return true
}

// tick lets time pass, and all that happens then.
func tick(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// draw draws what becomes of a request.
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
		r.until = w.now().Add(upTo(w.rng, 2*w.lease)) // it hangs
	}
}

// sleep lets time pass until at, or until somebody comes to the gate.
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

// finish ends everything. What has been started has to end, or the bubble says so.
func (w *world) finish() {
	close(w.over)
	w.gate.close()
	w.end()
	w.running.Wait()
	if w.store != nil {
		_ = w.store.Close()
	}
}
