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

// plots are what happens to a world: first things go wrong, then nothing does any
// more, and all that was accepted has to come to its end.
type plots struct {
	w    *world
	rng  *rand.Rand
	next time.Time // when something happens
	back time.Time // when a store that is down, or ill, comes back

	chaos    time.Time // the end of what goes wrong
	calmFrom time.Time
	last     time.Time // by when one more task has to have finished
	ended    int       // tasks, when mend last looked
	stopped  bool      // the workers are to stop
	done     bool

	maxSkew  time.Duration
	maxAhead time.Duration
	commands int

	schedules bool // there are some
}

func newPlots(w *world) *plots {
	p := &plots{w: w, rng: w.rng, next: w.begun, schedules: w.chance(2)}
	p.chaos = w.begun.Add(time.Minute + upTo(w.rng, 4*time.Minute))
	p.startHosts()
	return p
}

// act has the next thing happen if it is time, or lets time pass.
func (p *plots) act() {
	w := p.w
	now := w.now()
	switch {
	case !w.calm && !now.Before(p.chaos):
		p.calm()
	case w.ill && !now.Before(p.back):
		w.log("the store is ended")
		w.crashStore(false)
	case w.store == nil && !now.Before(p.back):
		w.log("the store is opened again")
		w.reopenStore()
	case !now.Before(p.next):
		p.happen()
	default:
		if w.calm {
			w.judge.awake()
		}
		until := p.next
		if (w.store == nil || w.ill) && p.back.Before(until) {
			until = p.back
		}
		if !w.calm && p.chaos.Before(until) {
			until = p.chaos
		}
		w.sleep(until)
	}
}

// happen has one thing happen.
func (p *plots) happen() {
	const pause = 2 * time.Second
	if p.w.calm {
		p.next = p.w.now().Add(10 * time.Second)
		p.mend()
		return
	}
	p.next = p.w.now().Add(upTo(p.rng, pause))
	plot := p.draw()
	plot()
}

// draw draws what happens.
func (p *plots) draw() func() {
	all := []struct {
		weight int
		plot   func()
	}{
		{16, p.submit},
		{8, p.command},
		{4, p.configure},
		{2, p.pauseQueue},
		{4, p.startHost},
		{2, p.stopWorker},
		{1, p.halt},
		{2, p.killHost},
		{3, p.occupy},
		{1, p.pauseSlots},
		{3, p.stall},
		{2, p.jump},
		{2, p.setWall},
		{3, p.schedule},
		{2, p.pauseSchedule},
		{1, func() { p.unschedule(pick(p.rng, scheduleNames...)) }},
		{1, p.crash},
		{1, p.flaw},
		{4, p.explain},
		{2, p.w.judge.audit},
	}
	total := 0
	for _, a := range all {
		total += a.weight
	}
	at := p.rng.IntN(total)
	for _, a := range all {
		if at -= a.weight; at < 0 {
			return a.plot
		}
	}
	return nil
}

// ask has the client do something that goes through the gate.
func (p *plots) ask(what string, do func() error) {
	p.w.running.Go(func() {
		err := do()
		p.w.note(func() { p.w.log("client: %s: %v", what, err) })
	})
}

// submit submits a few tasks.
func (p *plots) submit() {
	specs := make([]queue.Spec, 1+p.rng.IntN(4))
	name := pick(p.rng, queueNames...)
	var batch queue.ID
	p.bytes(batch[:])
	for i := range specs {
		specs[i] = p.spec(name)
		if len(specs) == 3 {
			specs[i].Batch, specs[i].AfterBatch = batch, queue.ID{}
		}
	}
	if len(specs) == 3 {
		specs[2].Batch, specs[2].AfterBatch = queue.ID{}, batch
	}
	tasks := make([]queue.NewTask, len(specs))
	for i := range specs {
		tasks[i] = p.w.client.q.Prepare(specs[i])
	}
	p.ask(fmt.Sprintf("submits %d tasks", len(tasks)), func() error {
		for range 3 {
			_, err := p.w.client.q.Submit(p.w.ctx, tasks...)
			if !errors.Is(err, queue.ErrUnavailable) {
				return err
			}
			p.w.wait(p.w.ctx, time.Second)
			if p.w.gate.pass(p.w.ctx, p.w.client, "repeat "+tasks[0].ID.String()) == over {
				return queue.ErrClosed
			}
		}
		return queue.ErrUnavailable
	})
}

func (p *plots) bytes(to []byte) {
	for i := range to {
		to[i] = byte(p.rng.Uint32())
	}
}

// spec draws a task of any sort.
func (p *plots) spec(name string) queue.Spec {
	rng, now := p.rng, p.w.now()
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
		s.Timeout = upTo(rng, p.w.lease)
	case 3:
		s.Unique = fmt.Sprint("u", rng.IntN(5))
		if rng.IntN(2) == 0 {
			s.UniqueFor = time.Second + upTo(rng, time.Hour)
		}
	case 4, 5:
		s.Group = fmt.Sprint("g", rng.IntN(3))
	case 6:
		if all := p.w.judge.order; len(all) > 0 {
			s.After = []queue.ID{pick(rng, all...).ID}
		}
	case 7:
		if all := p.w.judge.order; len(all) > 0 {
			s.AfterAny = []queue.ID{pick(rng, all...).ID}
		}
	default:
	}
	return s
}

// command has an operator say something about some tasks.
func (p *plots) command() {
	c := queue.Command{Do: pick(
		p.rng, queue.OrderPause, queue.OrderResume, queue.OrderCancel, queue.OrderRetry, queue.OrderForget,
	)}
	switch all := p.w.judge.order; p.rng.IntN(4) {
	case 0:
		c.Filter = queue.Filter{Kind: pick(p.rng, kindNames...), Queue: pick(p.rng, queueNames...)}
	case 1:
		c.Filter = queue.Filter{Key: "ann"}
	default:
		c.Filter.IDs = []queue.ID{} // before there are tasks the command is for none
		for range 3 {
			if len(all) > 0 {
				c.Filter.IDs = append(c.Filter.IDs, pick(p.rng, all...).ID)
			}
		}
	}
	p.say(c)
}

// say has the client, or a worker, send a command.
func (p *plots) say(c queue.Command) {
	p.commands++
	c.By, c.Reason = fmt.Sprint("operator", p.commands), "for a reason"
	who := pick(p.rng, p.w.nodes...)
	if who.killed {
		who = p.w.client
	}
	p.ask(fmt.Sprintf("%s %+v", c.Do, len(c.Filter.IDs)), func() error {
		_, err := who.q.Command(p.w.ctx, c)
		return err
	})
}

// configure changes what is set for a queue, or for all together.
func (p *plots) configure() {
	var s queue.Settings
	if p.w.chance(4) {
		s.Total, s.TotalPerKey = p.rng.IntN(6), p.rng.IntN(3)
		p.set("", s)
		return
	}
	if p.w.chance(2) {
		s.Max = 1 + p.rng.IntN(4)
	}
	if p.w.chance(2) {
		s.PerKey = 1 + p.rng.IntN(2)
	}
	if p.w.chance(3) {
		s.Rate = queue.Rate{PerSecond: 0.5 + 4*p.rng.Float64(), Burst: p.rng.IntN(3)}
	}
	if p.w.chance(3) {
		s.KeyRate = queue.Rate{PerSecond: 0.5 + 2*p.rng.Float64(), Burst: p.rng.IntN(3)}
	}
	if p.w.chance(4) {
		s.Caps = stint.Caps{Low: 1, Normal: 2}
	}
	if p.w.chance(4) {
		s.Pending = 10 + p.rng.IntN(20)
	}
	if p.w.chance(4) {
		s.Keep = queue.Retention{Age: upTo(p.rng, time.Minute)}
		s.KeepDead = queue.Retention{Count: 1 + p.rng.IntN(4)}
	}
	p.set(pick(p.rng, queueNames...), s)
}

// set sets s, and nothing else, for a queue.
func (p *plots) set(name string, s queue.Settings) {
	set := func(f queue.Field) bool { return slices.Contains(s.Fields(), f) }
	c := queue.Change{Set: s, Unset: slices.DeleteFunc(queue.Fields(), set)}
	p.ask(fmt.Sprintf("sets %s to %+v", name, s), func() error { return p.w.client.q.Change(p.w.ctx, name, c) })
}

// pauseQueue pauses a queue, or all, or ends that.
func (p *plots) pauseQueue() {
	name := pick(p.rng, append(queueNames, "")...)
	if p.w.chance(3) {
		p.ask("pauses queue "+name, func() error {
			return p.w.client.q.PauseQueue(p.w.ctx, name, queue.Pause{By: "operator"})
		})
		return
	}
	p.ask("resumes queue "+name, func() error { return p.w.client.q.ResumeQueue(p.w.ctx, name) })
}

// crash ends the store, for a while.
func (p *plots) crash() {
	if p.w.store == nil {
		return
	}
	power := p.w.chance(3)
	p.w.log("the store crashes, and the power goes: %t", power)
	p.w.crashStore(power)
	p.back = p.w.now().Add(upTo(p.rng, 20*time.Second))
}

// flaw has the disk fail with the next batch.
func (p *plots) flaw() {
	if p.w.store == nil || p.w.ill {
		return
	}
	p.w.disk.fault = pick(p.rng, refused, unclear)
	p.back = p.w.now().Add(upTo(p.rng, 10*time.Second))
	p.w.log("the disk fails with the next batch: %d", p.w.disk.fault)
}

func (p *plots) explain() {
	if all := p.w.judge.order; len(all) > 0 {
		p.w.judge.explained(pick(p.rng, all...))
	}
}

// calm ends all that goes wrong, and has enough workers for all that is there.
func (p *plots) calm() {
	w := p.w
	w.calm, p.calmFrom = true, w.now()
	p.last = p.calmFrom.Add(time.Hour)
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
		h.skew.Store(int64(p.maxSkew))
		h.ahead.Store(int64(p.maxAhead))
		if h.paused {
			h.pause(false)
		}
	}
	p.calmFrom = w.now() // until now some have asked by another clock
	p.startHosts()
	for i, name := range queueNames {
		p.set(name, queue.Settings{Max: 2 + i, PerKey: 1 + p.rng.IntN(2), Rate: queue.Rate{PerSecond: 5}})
	}
	p.set("", queue.Settings{Total: 3 + p.rng.IntN(3), TotalPerKey: p.rng.IntN(3)})
	p.next = w.now()
}

// mend has an operator see to what does not go on by itself, until all is finished,
// and then stops the workers.
func (p *plots) mend() {
	w := p.w
	left := 0
	var stuck *life
	if p.schedulesEnd() {
		left++
	}
	for _, l := range w.judge.order {
		if l.unfinished() || !l.forgotten && l.State != queue.Succeeded {
			left++
			stuck = l
		}
	}
	if ended := len(w.judge.order) - left; ended > p.ended { // one slot of a key may have an hour of work
		p.ended, p.last = ended, w.now().Add(time.Hour)
	}
	switch {
	case left > 0 && w.now().After(p.last):
		w.judge.explained(stuck)
		w.judge.broken(stuck, "it is one of %d that do not come to their end", left)
	case left > 0:
		for _, name := range append(queueNames, "") { // a pause may have been on its way
			if w.judge.rules.Settings.Paused(name) {
				p.ask("resumes queue "+name, func() error { return w.client.q.ResumeQueue(w.ctx, name) })
			}
		}
		p.say(queue.Command{Do: queue.OrderResume, All: true})
		p.say(queue.Command{Do: queue.OrderRetry, Filter: queue.Filter{States: []queue.State{queue.Dead, queue.Cancelled}}})
	case !p.stopped:
		p.stopped = true
		p.next = w.now().Add(4*w.grace + w.lease + 10*time.Second) // a handler may be deaf, and then a hook
		w.judge.audit()
		for _, n := range w.nodes {
			if n.worker() && !n.killed && !n.stopping {
				n.stop()
			}
		}
	default:
		p.done = true
		p.closing()
	}
}

// closing looks at what is left when all have stopped.
func (p *plots) closing() {
	for _, n := range p.w.nodes {
		if !n.worker() || n.killed {
			continue
		}
		if !n.ended {
			p.w.judge.broken(nil, "%s does not stop", n.name)
		}
		p.w.judge.reportedAll(n)
	}
}
