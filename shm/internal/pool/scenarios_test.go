package pool //nolint:testpackage // the search stops the code before each access to a shared word

import "testing"

// Two processes, in every order; one of them may die or be stopped at any instant.
func TestB8_EveryOrderOfTwo(t *testing.T) {
	one, two := Shape{2, []int{1}, 0}, Shape{2, []int{2}, 0}
	runAll(t, []scenario{
		{name: "fault", shape: one, actors: cast(worker(3, 1), worker(3, 1)), switches: anyOrder, faults: 1, timeouts: 1},
		{
			name: "stopped is seen", shape: one, actors: cast(worker(3, 1), worker(3, 1)),
			switches: anyOrder, faults: 1, sees: true,
		},
		{name: "above", shape: one, actors: cast(worker(4, 1), worker(3, 1)), switches: anyOrder, timeouts: 1},
		{name: "doubt", shape: one, actors: cast(worker(3, 1), doubter), switches: anyOrder, faults: 1},
		{name: "busy", shape: one, actors: cast(worker(3, 1), busy), switches: anyOrder, faults: 1},
		{name: "busy for a while", shape: one, actors: cast(worker(3, 1), busyForAWhile), switches: anyOrder},
		{name: "leaver", shape: one, actors: cast(worker(3, 1), leaver), switches: anyOrder},
		{name: "room", shape: two, actors: cast(worker(3, 1), worker(3, 1)), switches: anyOrder, faults: 1},
		{name: "try", shape: one, actors: cast(worker(3, 1), trier), switches: anyOrder, faults: 1},
	})
}

// Three processes or threads, in every order with few switches between those that can
// run.
func TestB8_EveryOrderOfThree(t *testing.T) {
	one, two, pair := Shape{3, []int{1}, 0}, Shape{3, []int{2}, 0}, Shape{2, []int{1}, 0}
	runAll(t, []scenario{
		{name: "one slot", shape: one, actors: cast(worker(3, 1), worker(4, 1), worker(3, 1)), switches: 1, faults: 1},
		{
			name: "stopped is seen", shape: one, actors: cast(worker(3, 1), worker(4, 1), worker(3, 1)),
			switches: 1, faults: 1, sees: true,
		},
		{name: "two are seen", shape: one, actors: cast(worker(3, 1), worker(3, 1), worker(3, 1)), faults: 2, sees: true},
		{name: "two slots", shape: two, actors: cast(worker(3, 1), worker(3, 1), worker(3, 1)), switches: 2, faults: 1},
		{name: "threads", shape: one, actors: cast(scheduler, worker(3, 1)), switches: 2, faults: 1},
		{name: "threads of two", shape: one, actors: cast(scheduler, scheduler), switches: 3},
		{name: "tiers", shape: one, actors: cast(holder, worker(3, 1), above), switches: 2},
		// No timeouts: a concurrent sweep would hand the slot on by tier.
		{name: "oldest", shape: one, actors: cast(yielder, oldest, worker(4, 1)), switches: 2, timeouts: never},
		{name: "yields", shape: one, actors: cast(worker(3, 1), yields, worker(4, 1)), switches: 2, faults: 1},
		{name: "doubt", shape: one, actors: cast(worker(3, 1), doubter, worker(3, 1)), switches: 2},
		{name: "busy", shape: one, actors: cast(worker(3, 1), busy, worker(3, 1)), switches: 2},
		{name: "try", shape: one, actors: cast(worker(3, 1), worker(3, 1), trier), switches: 1, faults: 2},
		{name: "late grant", shape: one, actors: cast(worker(3, 1), worker(3, 1), trier), switches: 2, faults: 1},
		{name: "held from doubt", shape: one, actors: cast(holder, doubter, worker(3, 1)), switches: 2},
		{name: "two faults", shape: one, actors: cast(worker(3, 1), worker(3, 1), worker(3, 1)), faults: 2},
		{
			name: "successor", shape: pair, actors: cast(worker(3, 1), worker(3, 1), successor),
			switches: 1, faults: 1, timeouts: 1,
		},
		{name: "heir", shape: pair, actors: cast(victim, worker(3, 1), successor), switches: 3, timeouts: 1},
		{name: "left", shape: pair, actors: cast(worker(3, 1), leaver, successor), switches: 2},
		{name: "stopped successor", shape: pair, actors: cast(worker(3, 1), worker(3, 1), successor), faults: 2, timeouts: 1},
	})
}

func cast(scripts ...func(*actor)) []func(*actor) { return scripts }

// worker takes a slot and releases it, a number of times.
func worker(tier, times int) func(*actor) {
	return func(a *actor) {
		a.join()
		for a.round = range times {
			a.release(a.acquire(tier))
		}
	}
}

// doubter waits for a slot, and stops waiting.
func doubter(a *actor) {
	a.join()
	m := a.process.member
	a.rest(inTake)
	if got, ok := m.Handle(0).Take(3); ok {
		a.enter(got)
		a.release(got.Index)
		return
	}
	a.rest(inWant)
	m.Handle(0).Want(Want{Tier: 3, Ticket: 1, Count: 1})
	a.rest(inStop)
	m.Handle(0).Want(Want{})
}

// busy waits for a slot, can use none until all others are done, and then stops waiting.
func busy(a *actor) {
	a.join()
	if a.beBusy() {
		a.until(inUntil, func() bool {
			for _, other := range a.world.actors {
				if other != a && !other.done && !other.process.dead {
					return false
				}
			}
			return true
		})
		a.rest(inStop)
		a.process.member.Handle(0).Want(Want{})
	}
}

// busyForAWhile waits for a slot, can use none, and then asks again.
func busyForAWhile(a *actor) {
	a.join()
	if a.beBusy() {
		got := a.await(3)
		a.rest(inStop, uint64(got.Index))
		a.process.member.Handle(0).Want(Want{})
		a.enter(got)
		a.release(got.Index)
	}
}

// beBusy waits and is busy. It reports false if it got a slot at once.
func (a *actor) beBusy() bool {
	m := a.process.member
	a.rest(inTake)
	if got, ok := m.Handle(0).Take(3); ok {
		a.enter(got)
		a.release(got.Index)
		return false
	}
	want := Want{Tier: 3, Ticket: 1, Count: 1}
	a.rest(inWant)
	m.Handle(0).Want(want)
	a.rest(inStop)
	want.Busy = true
	m.Handle(0).Want(want)
	return true
}

// trier does not wait. It tries at some time, and again when all others are done or
// dead: then it must get a slot.
func trier(a *actor) {
	a.process.immune = true
	a.join()
	if got, ok := a.try(); ok {
		a.release(got.Index)
	}
	a.until(inUntil, func() bool {
		for _, other := range a.world.actors {
			if other != a && !other.done && !other.process.dead {
				return false
			}
		}
		return true
	})
	a.round = 1
	got, ok := a.try()
	if !ok {
		a.world.fail("a slot that is not held was refused")
		return
	}
	a.release(got.Index)
}

// try takes a slot without waiting.
func (a *actor) try() (Slot, bool) {
	a.rest(inTake)
	handle := a.process.member.Handle(0)
	got, ok := handle.Take(3)
	if !ok {
		a.process.member.Handle(0).ReapOwners()
		got, ok = handle.Take(3)
	}
	if ok {
		a.enter(got)
	}
	return got, ok
}

// successor joins later, if there is a free entry.
func successor(a *actor) {
	a.rest(inJoin)
	if a.join() {
		a.release(a.acquire(3))
	}
}

// victim dies while it holds a slot.
func victim(a *actor) {
	a.join()
	got, _ := a.process.member.Handle(0).Take(3)
	a.enter(got)
	a.until(inUntil, func() bool { return true })
	a.world.do(choice{kill, a.id})
	a.until(inDeath, func() bool { return false })
}

// leaver leaves while it holds a slot.
func leaver(a *actor) {
	a.join()
	a.acquire(3)
	a.leave()
}

// holder holds a slot until all others wait.
func holder(a *actor) { a.release(hold(a)) }

func hold(a *actor) (slot int) {
	a.join()
	got, _ := a.process.member.Handle(0).Take(3)
	a.enter(got)
	a.until(inUntil, func() bool {
		for _, other := range a.world.actors {
			if other != a && !other.asleep && other.place != inStop {
				return false
			}
		}
		return true
	})
	return got.Index
}

// yielder holds a slot until all others wait, and yields it.
func yielder(a *actor) {
	a.yieldSlot(hold(a))
}

// oldest waits longest, in a low tier, and gets its slot first.
func oldest(a *actor) {
	a.acquireSecond(3, "the participant that has waited longest was passed over")
}

// yields takes a slot and yields it.
func yields(a *actor) {
	a.join()
	a.yieldSlot(a.acquire(3))
}

// above waits in a high tier, with a holder and a waiter in a lower tier. It gets its
// slot before that waiter.
func above(a *actor) {
	a.acquireSecond(6, "a lower tier went first")
}

// acquireSecond acquires a slot in a tier. It fails with the given message unless
// exactly one participant, the holder, has had a slot before.
func (a *actor) acquireSecond(tier int, otherwise string) {
	a.join()
	slot := a.acquire(tier)
	if len(a.world.order) != 2 {
		a.world.fail(otherwise)
	}
	a.release(slot)
}

// scheduler behaves as a real process: one thread takes slots, and another sleeps for it.
func scheduler(a *actor) {
	a.join()
	p, m := a.process, a.process.member
	a.world.start(p, watcher)
	a.rest(inTake)
	got, ok := m.Handle(0).Take(3)
	if !ok {
		a.lock(inLock)
		p.waits = true
		m.Handle(0).Want(Want{Tier: 3, Ticket: 1, Count: 1})
		a.unlock()
		for !ok {
			a.until(inUntil, func() bool { return p.notified })
			p.notified = false
			if got, ok = m.Handle(0).Take(3); !ok && !m.Handle(0).Queued() {
				a.lock(inLockAgain)
				m.Handle(0).Check()
				got, ok = m.Handle(0).Take(3)
				a.unlock()
			}
		}
		a.lock(inLockToStop)
		p.waits = false
		m.Handle(0).Want(Want{})
		a.unlock()
	}
	a.enter(got)
	a.release(got.Index)
	p.closed = true
	m.pool.ring(m.index)
}

// watcher sleeps until a slot is granted, and notifies the thread that waits.
func watcher(a *actor) {
	p, m := a.process, a.process.member
	for {
		a.rest(inLook)
		a.bell = m.Bell() + 1
		a.lock(inLock)
		if p.closed {
			a.unlock()
			return
		}
		if p.waits && m.Handle(0).Check() {
			p.notified = true
		}
		a.unlock()
		if a.sleep() {
			a.lock(inLockAgain)
			a.sweep()
			a.unlock()
		}
	}
}
