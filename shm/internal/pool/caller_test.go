package pool //nolint:testpackage // the search stops the code before each access to a shared word

import "testing"

// Two callers of one process that watch for each other, beside another process: the one
// that watches is served, or woken, or dies, while the other begins to wait.
func TestB8_EveryOrderOfCallers(t *testing.T) {
	two := Shape{2, []int{1}, 0}
	runAll(t, []scenario{
		{name: "keep", shape: two, actors: cast(callers(true), worker(3, 1)), switches: 3},
		{name: "release", shape: two, actors: cast(callers(false), worker(3, 1)), switches: 3},
		{name: "above", shape: two, actors: cast(callers(false), worker(4, 2)), switches: 2},
		{name: "fault", shape: two, actors: cast(callers(false), worker(3, 1)), switches: 1, faults: 1},
		{name: "both", shape: two, actors: cast(callers(true), callers(false)), switches: 2},
	})
}

// callers is a process with two callers, and a standby goroutine to which a watching
// caller hands over. A released slot is kept for the other caller, or goes to the first
// waiter.
func callers(keep bool) func(*actor) {
	return func(a *actor) {
		a.join()
		p := a.process
		p.callers, p.keeps = 2, keep
		a.world.start(p, call)
		a.world.start(p, standby)
		call(a)
	}
}

// call takes a slot as a goroutine does: the first of its process that waits watches for
// all waiters of the process.
func call(a *actor) {
	p, m := a.process, a.process.member
	a.lock(inLock)
	got, ok := m.Handle(0).Take(3)
	if !ok {
		p.queue = append(p.queue, a)
		m.Handle(0).Want(p.want())
		begin := !p.watched
		p.watched = true
		a.unlock()
		if begin {
			a.watch(func() bool { return a.given })
		}
		a.until(inUntil, func() bool { return a.given })
		got, a.given, a.got = a.got, false, Slot{}
		a.rest(inAccept, uint64(got.Index), flag(got.Abandoned))
	} else {
		a.unlock()
	}
	a.enter(got)
	a.lock(inLockAgain)
	a.giveUp(got.Index)
	if p.keeps && len(p.queue) > 0 {
		p.serve(Slot{Index: got.Index})
		m.Handle(0).Want(p.want())
		m.pool.ring(m.index) // the caller that is served may be the watching one, and asleep
	} else {
		m.Handle(0).Release(got.Index)
	}
	a.unlock()
	if p.callers--; p.callers == 0 {
		p.closed = true
	}
}

// want describes the waiters of the process.
func (p *process) want() Want { return Want{Tier: 3, Ticket: 1, Count: len(p.queue)} }

// serve gives a slot to the first waiter of the process.
func (p *process) serve(got Slot) {
	first := p.queue[0]
	p.queue = p.queue[1:]
	first.given, first.got = true, got
}

// watch watches until served reports true, and then hands over if there are waiters.
func (a *actor) watch(served func() bool) {
	p, m := a.process, a.process.member
	for {
		a.rest(inLook)
		a.bell = m.Bell() + 1
		a.lock(inLock)
		if len(p.queue) > 0 && m.Handle(0).Check() {
			if got, ok := m.Handle(0).Take(3); ok {
				p.serve(got)
				m.Handle(0).Want(p.want())
			}
		}
		if served() || len(p.queue) == 0 {
			p.watched = len(p.queue) > 0
			p.handed = p.watched
			a.unlock()
			return
		}
		a.unlock()
		if a.sleep() {
			a.lock(inLockAgain)
			a.sweep()
			a.unlock()
		}
	}
}

// standby watches when a caller hands over to it.
func standby(a *actor) {
	p := a.process
	for {
		a.until(inUntil, func() bool { return p.handed || p.closed })
		if !p.handed {
			return
		}
		p.handed = false
		a.watch(func() bool { return len(p.queue) == 0 })
	}
}
