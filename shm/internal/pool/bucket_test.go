package pool //nolint:testpackage // the search stops the code before each access to a shared word

import "testing"

// Participants of a bucket, in every order: the first in the queue takes tokens as they
// are made, and no participant sleeps while there is a token.
func TestB13_EveryOrderOfBuckets(t *testing.T) {
	two, three := Shape{2, []int{1}, 1}, Shape{3, []int{1}, 1}
	runAll(t, []scenario{
		{name: "two", shape: two, actors: cast(mint(3), customer(3, 2), customer(3, 1)), switches: 3},
		{
			name: "fault", shape: two, actors: cast(mint(2), customer(3, 1), customer(3, 1)),
			switches: 1, faults: 1, timeouts: 1,
		},
		{name: "tiers", shape: two, actors: cast(mint(2), customer(4, 1), customer(3, 1)), switches: anyOrder},
		{name: "doubt", shape: two, actors: cast(mint(1), undecided, customer(3, 1)), switches: anyOrder},
		{name: "leaver", shape: two, actors: cast(mint(1), quitter, customer(3, 1)), switches: anyOrder},
		{
			name: "dead", shape: three, actors: cast(mint(2), insatiable, customer(3, 1), customer(2, 1)),
			switches: 1, timeouts: 1,
		},
		{name: "three", shape: three, actors: cast(mint(3), customer(3, 1), customer(3, 1), customer(3, 1)), switches: 1},
		{
			name: "tiers of three", shape: three, actors: cast(mint(3), customer(3, 1), customer(4, 1), customer(5, 1)),
			switches: 1,
		},
		{
			name: "doubt of three", shape: three, actors: cast(mint(2), undecided, customer(3, 1), customer(3, 1)),
			switches: 2,
		},
		{name: "faults", shape: three, actors: cast(mint(3), customer(3, 1), customer(3, 1), customer(3, 1)), faults: 1},
	})
}

// A higher tier is served first, also if the lower one waits before it.
func TestB13_HigherTierFirst(t *testing.T) {
	shape := Shape{3, []int{1}, 1}
	runAll(t, []scenario{
		{name: "above", shape: shape, actors: cast(late(2), customer(3, 1), preferred), switches: 3},
	})
}

// mint makes tokens, which any participant may take.
func mint(tokens int) func(*actor) {
	return func(a *actor) {
		a.process.immune = true
		for a.round = range tokens {
			a.until(inUntil, func() bool { return true })
			a.world.tokens++
		}
	}
}

// late makes tokens once all others wait.
func late(tokens int) func(*actor) {
	return func(a *actor) {
		a.process.immune = true
		a.until(inUntil, func() bool {
			for _, other := range a.world.actors {
				if other != a && !other.asleep {
					return false
				}
			}
			return true
		})
		a.world.tokens += tokens
	}
}

// customer takes tokens one by one, and moves to the end of the queue after each.
func customer(tier, times int) func(*actor) {
	return func(a *actor) {
		a.join()
		m := a.process.member
		a.rest(inTake)
		m.BucketHandle(0).Enqueue(a.draw(tier), 1)
		for a.round = range times {
			a.buy(tier)
			if a.round < times-1 {
				a.rest(inWant)
				a.world.ticket++ // behind all that wait
				m.BucketHandle(0).Enqueue(a.draw(tier), 1)
			}
		}
		a.rest(inStop)
		m.BucketHandle(0).Enqueue(Want{}, 0)
	}
}

// preferred gets its token before a customer that has waited longer.
func preferred(a *actor) {
	customer(6, 1)(a)
	if a.world.order[0] != a.id {
		a.world.fail("a lower tier went first")
	}
}

// undecided begins to wait and stops.
func undecided(a *actor) {
	a.join()
	a.rest(inWant)
	a.process.member.BucketHandle(0).Enqueue(a.draw(3), 1)
	a.rest(inStop)
	a.process.member.BucketHandle(0).Enqueue(Want{}, 0)
}

// insatiable waits for more tokens than there are, and dies.
func insatiable(a *actor) {
	a.join()
	a.rest(inWant)
	a.process.member.BucketHandle(0).Enqueue(a.draw(4), 100)
	a.until(inUntil, func() bool { return true })
	a.world.faults++
	a.world.do(choice{kill, a.id})
	a.until(inDeath, func() bool { return false })
}

// quitter leaves while it waits.
func quitter(a *actor) {
	a.join()
	a.rest(inWant)
	a.process.member.BucketHandle(0).Enqueue(a.draw(3), 1)
	a.leave()
}

// draw returns a want with the next ticket.
func (a *actor) draw(tier int) Want {
	a.world.ticket++ // two participants have the same one
	return Want{Tier: tier, Ticket: a.world.ticket / 2, Count: 1}
}

// buy takes a token when there is one and the actor is first. It calls MayTake after a
// ring, when tokens are due, and after a period in which it was not first.
func (a *actor) buy(tier int) {
	m, w := a.process.member, a.world
	look, mine := true, false
	for {
		a.rest(inLook, flag(look), flag(mine))
		a.bell = m.Bell() + 1
		m.BucketHandle(0).Heartbeat()
		if look || !mine { // a result of MayTake is not used a second time
			if mine = m.BucketHandle(0).MayTake(tier); mine && w.tokens > 0 {
				w.tokens--
				a.spend()
				return
			}
		}
		expired := a.sleepUntil(func() bool { return mine && w.tokens > 0 }, flag(mine))
		if look = !expired; expired {
			a.rest(inSweep, flag(mine))
			a.sweep()
			m.BucketHandle(0).Evict(int64(w.tokens))
		}
	}
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (a *actor) spend() {
	m := a.process.member
	a.world.order = append(a.world.order, a.id)
	a.world.logf("%d takes a token", a.id)
	for {
		a.rest(inAccept)
		if seen := m.BucketHandle(0).Spent(); m.BucketHandle(0).Spend(seen, seen+1) {
			return
		}
	}
}
