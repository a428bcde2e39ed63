package pool //nolint:testpackage // the search stops the code before each access to a shared word

import (
	"fmt"
	"slices"
)

// Lock, Unlock, Held, Stopped and Wake implement Host as the kernel does.

func (w *world) callsKernel(a *actor) {
	if step != nil {
		a.pause(nil)
	}
}

func (w *world) Lock(i int) bool {
	a := w.running
	w.callsKernel(a)
	a.learn(uint64(w.locks[i].number()))
	// The lock belongs to the open file: a process does not exclude itself.
	if w.locks[i] != nil && w.locks[i] != a.process {
		return false
	}
	w.locks[i] = a.process
	return true
}

func (w *world) Held(i int) bool {
	a := w.running
	w.callsKernel(a)
	a.learn(uint64(w.locks[i].number()))
	return w.locks[i] != nil && w.locks[i] != a.process
}

func (w *world) Unlock(i int) {
	w.callsKernel(w.running)
	w.locks[i] = nil
}

// Stopped reports false in scenarios whose host does not see stopped processes.
func (w *world) Stopped(i int) bool {
	if !w.scenario.sees {
		return false
	}
	a := w.running
	w.callsKernel(a)
	stopped := slices.ContainsFunc(w.actors, func(a *actor) bool {
		m := a.process.member
		return m != nil && m.index == i && a.process.frozen && generationOf(m.held) == generationOf(uint64(*w.pool.state(i)))
	})
	if stopped {
		a.learn(1)
	}
	return stopped
}

func (w *world) Wake(bell *uint64) {
	w.callsKernel(w.running)
	for _, a := range w.actors {
		if a.asleep && w.pool.Bell(a.process.member.index) == bell {
			a.asleep = false
		}
	}
}

// sleep waits until the bell is rung or a period ends.
func (a *actor) sleep() (expired bool) { return a.sleepUntil(func() bool { return false }, 0) }

// sleepUntil is sleep that also ends when holds reports true.
func (a *actor) sleepUntil(holds func() bool, knows uint64) (expired bool) {
	a.rest(inSleep, knows)
	if a.process.member.Bell()+1 != a.bell { // as futex(2) compares the word again
		return false
	}
	a.asleep, a.bell = true, 0
	a.blocked = func() bool { return !a.asleep || a.expired || holds() }
	if !a.yield(struct{}{}) {
		panic(abandon{})
	}
	expired = a.expired
	a.asleep, a.expired = false, false
	if expired {
		a.learn(1)
	}
	return expired
}

// expire ends a period of a sleeper. Several sleepers may wake in the same period, but
// each of them only once.
func (a *actor) expire() {
	if a.expired = true; a.woke == a.world.now {
		a.world.now++
	}
	a.woke = a.world.now
}

// sweep is what a waiter does at the end of a period.
func (a *actor) sweep() {
	now := a.world.now
	a.learn(uint64(now))
	a.process.member.Sweep(now, 1)
}

// until waits for a condition outside the shared memory.
func (a *actor) until(place int, holds func() bool) {
	a.rest(place)
	a.blocked = holds
	if !a.yield(struct{}{}) {
		panic(abandon{})
	}
}

// lock takes the lock that the threads of a process share.
func (a *actor) lock(place int) {
	a.until(place, func() bool { return !a.process.locked })
	a.process.locked = true
}

func (a *actor) unlock() { a.process.locked = false }

// leave calls Leave with all that the actor holds.
func (a *actor) leave() {
	a.rest(inLeave)
	for s, p := range a.world.inside {
		if p == a.process {
			a.world.inside[s], a.world.orphan[s] = nil, true
		}
	}
	a.process.member.Leave()
	a.left = true
}

// rest marks a point at which everything that an actor knows is in its member, its
// place in the script, and knows.
func (a *actor) rest(place int, knows ...uint64) {
	a.place = place
	a.history = 0
	if m := a.process.member; m != nil {
		a.learn(m.held, uint64(m.handles[0].hint))
		for _, sighting := range m.sightings[0] {
			a.learn(sighting.slot, uint64(sighting.times))
		}
		for i := range m.buckets {
			s := &m.buckets[i].stall
			a.learn(s.want, s.asks, uint64(s.idle)) // without still: stillMax is never reached
		}
	}
	a.learn(knows...)
}

// join reports false if no entry is free.
func (a *actor) join() bool {
	m, err := a.world.pool.Join(100+a.id, "actor")
	if err != nil {
		return false
	}
	a.process.member = m
	return true
}

// acquire takes a slot as the processes do.
func (a *actor) acquire(tier int) (slot int) {
	m := a.process.member
	a.rest(inTake)
	got, ok := m.Handle(0).Take(tier)
	if !ok {
		a.rest(inWant)
		m.Handle(0).Want(Want{Tier: tier, Ticket: uint64(a.id), Count: 1})
		got = a.await(tier)
		a.rest(inStop, uint64(got.Index))
		m.Handle(0).Want(Want{})
	}
	a.enter(got)
	return got.Index
}

// await sleeps until a slot is granted, and takes it.
func (a *actor) await(tier int) Slot {
	m := a.process.member
	for {
		a.rest(inLook)
		a.bell = m.Bell() + 1
		mine := m.Handle(0).Check()
		switch {
		case mine:
			a.rest(inAccept)
			if got, ok := m.Handle(0).Take(tier); ok {
				return got
			}
		case a.sleep():
			a.rest(inSweep)
			a.sweep()
		}
	}
}

// The places of a script.
const (
	inJoin = iota + 1
	inTake
	inWant
	inLook
	inSleep
	inAccept
	inSweep
	inStop
	inRelease
	inLeave
	inUntil
	inDeath
	inLock
	inLockAgain
	inLockToStop
)

// enter checks that no other process holds the slot.
func (a *actor) enter(s Slot) {
	w := a.world
	if other := w.inside[s.Index]; other != nil {
		w.fail(fmt.Sprintf("%d got slot %d, which %d holds", a.id, s.Index, other.id))
	}
	if s.Abandoned != w.orphan[s.Index] {
		w.fail(fmt.Sprintf("%d got slot %d with Abandoned %t, which is wrong", a.id, s.Index, s.Abandoned))
	}
	w.inside[s.Index], w.orphan[s.Index] = a.process, false
	w.order = append(w.order, a.id)
	w.logf("%d has slot %d", a.id, s.Index)
}

func (a *actor) release(slot int) {
	a.giveUp(slot)
	a.process.member.Handle(0).Release(slot)
}

// yieldSlot gives the slot to the participant that has waited longest.
func (a *actor) yieldSlot(slot int) {
	a.giveUp(slot)
	a.process.member.Handle(0).Yield(slot)
}

func (a *actor) giveUp(slot int) {
	a.world.inside[slot] = nil
	a.rest(inRelease, uint64(slot))
	if a.world.owner(slot) != a.process {
		a.world.fail(fmt.Sprintf("%d lost slot %d", a.id, slot))
	}
}

// roundsMax is the number of periods until all effects of faults must be repaired.
const roundsMax = periodsMax + 3

// finish lets time pass until all actors that can finish have done so, then resumes the
// stopped ones and lets time pass again.
func (w *world) finish() {
	for _, a := range w.actors {
		if w.faults == 0 && !a.done {
			w.fail(fmt.Sprintf("%d is asleep for ever, and nothing has failed", a.id))
		}
	}
	w.recover()
	for _, p := range w.actors {
		p.process.frozen = false
	}
	w.recover()
	for _, a := range w.actors {
		if !a.done && !a.process.dead {
			w.fail(fmt.Sprintf("%d is not done", a.id))
		}
	}
	if w.wrong == "" {
		w.audit()
	}
}

// audit checks the state after all actors are done.
func (w *world) audit() {
	defer func(s func(*word)) { step = s }(step)
	step = nil
	for _, a := range w.actors {
		m := a.process.member
		if a.left && len(w.pool.buckets) > 0 && *w.pool.buckets[0].want(m.index) != 0 {
			w.fail(fmt.Sprintf("%d has left and seems to wait", a.id))
		}
		if m == nil || a.process.dead || a.left {
			continue
		}
		w.running = a
		for range periodsMax + 1 {
			w.now++
			a.sweep()
		}
		l := &w.pool.limits[0]
		for _, q := range w.queues() {
			if *q.mask&word(m.bit) != 0 || *q.want(m.index) != 0 {
				w.fail(fmt.Sprintf("%d seems to wait", a.id))
			}
		}
		for s := range l.count {
			if slot := uint64(*l.slot(s)); !isFree(slot) && !m.Handle(0).mayAccept(slot) {
				w.fail(fmt.Sprintf("slot %d is not free when all are done", s))
			}
		}
	}
}

// queues lists those of all limits and buckets.
func (w *world) queues() (all []*queue) {
	for i := range w.pool.limits {
		all = append(all, &w.pool.limits[i].queue)
	}
	for i := range w.pool.buckets {
		all = append(all, &w.pool.buckets[i].queue)
	}
	return all
}

// recover lets time pass. At the end no actor may sleep while a slot is free, or granted
// to a participant that does not take it.
func (w *world) recover() {
	w.calm()
	rounds := roundsMax
	if w.scenario.sees {
		rounds = 1 // the first sweep repairs all: no grant has to be old to be taken back
	}
	for range rounds {
		for _, a := range w.actors {
			if a.asleep {
				a.expire()
				w.logf("%d times out", a.id)
			}
			w.calm()
		}
	}
	for _, a := range w.actors {
		if !a.asleep || a.process.dead || a.process.frozen {
			continue
		}
		if w.tokens > 0 {
			w.fail(fmt.Sprintf("%d sleeps while there is a token", a.id))
		}
		l := &w.pool.limits[0]
		for s := range l.count {
			owner := w.owner(s)
			if w.scenario.shape.Buckets == 0 && (owner == nil || owner.dead || uint64(*l.slot(s))&granted != 0) {
				w.fail(fmt.Sprintf("%d sleeps while slot %d is not held", a.id, s))
			}
		}
	}
}

// owner is the process that owns a slot.
func (w *world) owner(s int) *process {
	slot := uint64(*w.pool.limits[0].slot(s)) &^ (granted | abandoned)
	for _, a := range w.actors {
		if m := a.process.member; m != nil && m.held == slot {
			return a.process
		}
	}
	return nil
}

// calm runs all actors that can run, one after the other.
func (w *world) calm() {
	for steps, busy := 0, true; busy && w.wrong == ""; {
		busy = false
		for _, a := range w.actors {
			for ; a.runnable() && w.wrong == ""; steps++ {
				w.run(a)
				busy = true
				if steps > stepsMax {
					w.fail(fmt.Sprintf("%d never ends", a.id))
				}
			}
		}
	}
}
