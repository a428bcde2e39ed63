package simulation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// scenario chooses what happens to a world: first there are faults, then there are none,
// and all accepted tasks must finish.
type scenario struct {
	w    *world
	rng  *rand.Rand
	next time.Time // of the next event
	back time.Time // when a store that has crashed or failed is opened again

	chaos    time.Time // when the faults end
	calmFrom time.Time
	last     time.Time // when another task must have finished
	ended    int       // the number of unfinished tasks when repair last looked
	asks     int       // calls of the client that have not returned
	stopped  bool      // the workers have been ordered to stop
	done     bool

	maxSkew  time.Duration
	maxAhead time.Duration
	commands int

	schedules bool // there are schedules
}

func newScenario(w *world) *scenario {
	p := &scenario{w: w, rng: w.rng, next: w.begun, schedules: w.chance(2)}
	p.chaos = w.begun.Add(time.Minute + upTo(w.rng, 4*time.Minute))
	p.startHosts()
	return p
}

// act makes the next event happen if it is due, and lets time pass otherwise.
func (sc *scenario) act() {
	w := sc.w
	now := w.now()
	switch {
	case !w.calm && !now.Before(sc.chaos):
		sc.calm()
	case w.ill && !now.Before(sc.back):
		w.log("the store is ended")
		w.crashStore(false)
	case w.store == nil && !now.Before(sc.back):
		w.log("the store is opened again")
		w.reopenStore()
	case !now.Before(sc.next):
		sc.happen()
	default:
		if w.calm {
			w.checker.awake()
		}
		until := sc.next
		if (w.store == nil || w.ill) && sc.back.Before(until) {
			until = sc.back
		}
		if !w.calm && sc.chaos.Before(until) {
			until = sc.chaos
		}
		w.sleep(until)
	}
}

// happen makes one event happen.
func (sc *scenario) happen() {
	const pause = 2 * time.Second
	if sc.w.calm {
		sc.next = sc.w.now().Add(10 * time.Second)
		sc.repair()
		return
	}
	sc.next = sc.w.now().Add(upTo(sc.rng, pause))
	sc.draw()()
}

// draw draws an event.
func (sc *scenario) draw() func() {
	all := []struct {
		weight int
		do     func()
	}{
		{16, sc.submit},
		{8, sc.command},
		{4, sc.configure},
		{2, sc.pauseQueue},
		{4, sc.startHost},
		{2, sc.stopWorker},
		{1, sc.halt},
		{2, sc.killHost},
		{3, sc.occupy},
		{1, sc.pauseSlots},
		{3, sc.stall},
		{2, sc.jump},
		{2, sc.setWall},
		{3, sc.schedule},
		{2, sc.pauseSchedule},
		{1, func() { sc.unschedule(pick(sc.rng, scheduleNames...)) }},
		{1, sc.crash},
		{1, sc.flaw},
		{4, sc.explain},
		{2, sc.w.checker.audit},
	}
	total := 0
	for _, a := range all {
		total += a.weight
	}
	at := sc.rng.IntN(total)
	for _, a := range all {
		if at -= a.weight; at < 0 {
			return a.do
		}
	}
	return nil
}

// ask makes a call of the client, which goes through the gate.
func (sc *scenario) ask(what string, do func() error) {
	sc.asks++
	sc.w.running.Go(func() {
		err := do()
		sc.w.note(func() {
			sc.asks--
			sc.w.log("client: %s: %v", what, err)
		})
	})
}

// submit submits a few tasks.
func (sc *scenario) submit() {
	specs := make([]queue.Spec, 1+sc.rng.IntN(4))
	name := pick(sc.rng, queueNames...)
	var batch queue.ID
	sc.bytes(batch[:])
	for i := range specs {
		specs[i] = sc.spec(name)
		if len(specs) == 3 {
			specs[i].Batch, specs[i].AfterBatch = batch, queue.ID{}
		}
	}
	if len(specs) == 3 {
		specs[2].Batch, specs[2].AfterBatch = queue.ID{}, batch
	}
	tasks := make([]queue.NewTask, len(specs))
	for i := range specs {
		tasks[i] = sc.w.client.q.Prepare(specs[i])
	}
	sc.ask(fmt.Sprintf("submits %d tasks", len(tasks)), func() error {
		for range 3 {
			_, err := sc.w.client.q.Submit(sc.w.ctx, tasks...)
			if !errors.Is(err, queue.ErrUnavailable) {
				return err
			}
			sc.w.wait(sc.w.ctx, time.Second)
			if sc.w.gate.pass(sc.w.ctx, sc.w.client, "repeat "+tasks[0].ID.String()) == over {
				return queue.ErrClosed
			}
		}
		return queue.ErrUnavailable
	})
}

func (sc *scenario) bytes(to []byte) {
	for i := range to {
		to[i] = byte(sc.rng.Uint32())
	}
}

// spec draws a task.
func (sc *scenario) spec(name string) queue.Spec {
	rng, now := sc.rng, sc.w.now()
	payload, _ := json.Marshal(args{rng.IntN(200)})
	s := queue.Spec{
		Kind:    pick(rng, kindNames...),
		Payload: payload,
		Options: queue.Options{
			Queue:       name,
			Key:         pick(rng, keyNames...),
			Tier:        stint.Priority(rng.IntN(3) - 1),
			MaxAttempts: 1 + rng.IntN(5),
			MaxCrashes:  1 + rng.IntN(6),
		},
	}
	switch rng.IntN(10) {
	case 0:
		s.RunAt = now.Add(upTo(rng, time.Minute))
	case 1:
		s.Deadline = now.Add(upTo(rng, time.Minute))
	case 2:
		s.Timeout = upTo(rng, sc.w.lease)
	case 3:
		s.Unique = fmt.Sprint("u", rng.IntN(5))
		if rng.IntN(2) == 0 {
			s.UniqueFor = time.Second + upTo(rng, time.Hour)
		}
	case 4, 5:
		s.Group = fmt.Sprint("g", rng.IntN(3))
	case 6:
		if all := sc.w.checker.order; len(all) > 0 {
			s.After = []queue.ID{pick(rng, all...).ID}
		}
	case 7:
		if all := sc.w.checker.order; len(all) > 0 {
			s.AfterAny = []queue.ID{pick(rng, all...).ID}
		}
	default:
	}
	return s
}

// command draws a command of an operator to some tasks.
func (sc *scenario) command() {
	c := queue.Command{Do: pick(
		sc.rng, queue.OrderPause, queue.OrderResume, queue.OrderCancel, queue.OrderRetry, queue.OrderForget,
	)}
	switch all := sc.w.checker.order; sc.rng.IntN(4) {
	case 0:
		c.Filter = queue.Filter{Kind: pick(sc.rng, kindNames...), Queue: pick(sc.rng, queueNames...)}
	case 1:
		c.Filter = queue.Filter{Key: "ann"}
	default:
		c.Filter.IDs = []queue.ID{} // the ID of no task, while there are none
		for range 3 {
			if len(all) > 0 {
				c.Filter.IDs = append(c.Filter.IDs, pick(sc.rng, all...).ID)
			}
		}
	}
	sc.say(c)
}

// say sends a command of the client or of a worker.
func (sc *scenario) say(c queue.Command) {
	sc.commands++
	c.By, c.Reason = fmt.Sprint("operator", sc.commands), "for a reason"
	author := pick(sc.rng, sc.w.nodes...)
	if author.killed {
		author = sc.w.client
	}
	sc.ask(fmt.Sprintf("%s %+v", c.Do, len(c.Filter.IDs)), func() error {
		_, err := author.q.Command(sc.w.ctx, c)
		return err
	})
}

// configure changes the settings of a queue, or of all queues.
func (sc *scenario) configure() {
	var s queue.Settings
	if sc.w.chance(4) {
		s.Total, s.TotalPerKey = sc.rng.IntN(6), sc.rng.IntN(3)
		sc.set("", s)
		return
	}
	if sc.w.chance(2) {
		s.Max = 1 + sc.rng.IntN(4)
	}
	if sc.w.chance(2) {
		s.PerKey = 1 + sc.rng.IntN(2)
	}
	if sc.w.chance(3) {
		s.Rate = queue.Rate{PerSecond: 0.5 + 4*sc.rng.Float64(), Burst: sc.rng.IntN(3)}
	}
	if sc.w.chance(3) {
		s.KeyRate = queue.Rate{PerSecond: 0.5 + 2*sc.rng.Float64(), Burst: sc.rng.IntN(3)}
	}
	if sc.w.chance(4) {
		s.Caps = stint.Caps{Low: 1, Normal: 2}
	}
	if sc.w.chance(4) {
		s.Pending = 10 + sc.rng.IntN(20)
	}
	if sc.w.chance(4) {
		s.Keep = queue.Retention{Age: upTo(sc.rng, time.Minute)}
		s.KeepDead = queue.Retention{Count: 1 + sc.rng.IntN(4)}
	}
	sc.set(pick(sc.rng, queueNames...), s)
}

// set sets the fields of s for a queue.
func (sc *scenario) set(name string, s queue.Settings) {
	set := func(f queue.Field) bool { return slices.Contains(s.Fields(), f) }
	c := queue.Change{Set: s, Unset: slices.DeleteFunc(queue.Fields(), set)}
	sc.ask(fmt.Sprintf("sets %s to %+v", name, s), func() error { return sc.w.client.q.Change(sc.w.ctx, name, c) })
}

// pauseQueue pauses a queue or all queues, or resumes them.
func (sc *scenario) pauseQueue() {
	name := pick(sc.rng, append(queueNames, "")...)
	if sc.w.chance(3) {
		sc.ask("pauses queue "+name, func() error {
			return sc.w.client.q.PauseQueue(sc.w.ctx, name, queue.Pause{By: "operator"})
		})
		return
	}
	sc.ask("resumes queue "+name, func() error { return sc.w.client.q.ResumeQueue(sc.w.ctx, name) })
}

// crash crashes the store, which is opened again later.
func (sc *scenario) crash() {
	if sc.w.store == nil {
		return
	}
	power := sc.w.chance(3)
	sc.w.log("the store crashes, and the power goes: %t", power)
	sc.w.crashStore(power)
	sc.back = sc.w.now().Add(upTo(sc.rng, 20*time.Second))
}

// flaw makes the disk fail with the next batch.
func (sc *scenario) flaw() {
	if sc.w.store == nil || sc.w.ill {
		return
	}
	sc.w.disk.fault = pick(sc.rng, refused, unclear)
	sc.back = sc.w.now().Add(upTo(sc.rng, 10*time.Second))
	sc.w.log("the disk fails with the next batch: %d", sc.w.disk.fault)
}

func (sc *scenario) explain() {
	if all := sc.w.checker.order; len(all) > 0 {
		sc.w.checker.explained(pick(sc.rng, all...))
	}
}

// calm ends all faults, and starts enough workers for all tasks.
func (sc *scenario) calm() {
	w := sc.w
	w.calm, sc.calmFrom = true, w.now()
	sc.last = sc.calmFrom.Add(time.Hour)
	w.log("all is calm")
	w.disk.fault = sound
	if w.ill {
		w.crashStore(false)
	}
	if w.store == nil {
		w.reopenStore()
	}
	waiting, _ := w.gate.all()
	for _, r := range waiting {
		r.until, r.fate, r.seen = time.Time{}, through, true
	}
	for _, h := range w.hosts {
		h.stalled = time.Time{}
		h.skew.Store(int64(sc.maxSkew))
		h.ahead.Store(int64(sc.maxAhead))
		if h.paused {
			h.pause(false)
		}
	}
	sc.calmFrom = w.now() // earlier calls may have been made by another clock
	sc.startHosts()
	for i, name := range queueNames {
		sc.set(name, queue.Settings{Max: 2 + i, PerKey: 1 + sc.rng.IntN(2), Rate: queue.Rate{PerSecond: 5}})
	}
	sc.set("", queue.Settings{Total: 3 + sc.rng.IntN(3), TotalPerKey: sc.rng.IntN(3)})
	sc.next = w.now()
}

// asksMax is how long after the faults a call of the client may still be repeated.
const asksMax = time.Minute

// repair makes an operator resume and release tasks that do not continue by themselves,
// until all are finished. Then it stops the workers.
func (sc *scenario) repair() {
	w := sc.w
	left := 0
	var stuck *life
	if sc.schedulesEnd() {
		left++
	}
	for _, l := range w.checker.order {
		if l.unfinished() || !l.forgotten && l.State != queue.Succeeded {
			left++
			stuck = l
		}
	}
	if ended := len(w.checker.order) - left; ended > sc.ended { // one slot of a key may have an hour of work
		sc.ended, sc.last = ended, w.now().Add(time.Hour)
	}
	switch {
	case left > 0 && w.now().After(sc.last):
		w.checker.explained(stuck)
		w.checker.broken(stuck, "it is one of %d that do not come to their end", left)
	case left > 0 || sc.asks > 0 && w.now().Before(sc.calmFrom.Add(asksMax)):
		for _, name := range append(queueNames, "") { // a pause may have been in flight
			if w.checker.rules.Settings.Paused(name) {
				sc.ask("resumes queue "+name, func() error { return w.client.q.ResumeQueue(w.ctx, name) })
			}
		}
		sc.say(queue.Command{Do: queue.OrderResume, All: true})
		sc.say(queue.Command{Do: queue.OrderRetry, Filter: queue.Filter{States: []queue.State{queue.Dead, queue.Cancelled}}})
	case !sc.stopped:
		sc.stopped = true
		sc.next = w.now().Add(4*w.grace + w.lease + 10*time.Second) // a handler may ignore its context, and then a hook
		w.checker.audit()
		for _, n := range w.nodes {
			if n.worker() && !n.killed && !n.stopping {
				n.stop()
			}
		}
	default:
		sc.done = true
		sc.closing()
	}
}

// closing checks what is left when all workers have stopped.
func (sc *scenario) closing() {
	for _, n := range sc.w.nodes {
		if !n.worker() || n.killed {
			continue
		}
		if !n.ended {
			sc.w.checker.broken(nil, "%s does not stop", n.name)
		}
		sc.w.checker.reportedAll(n)
	}
}
