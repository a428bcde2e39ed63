package storetest

import (
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// Suspects are tasks that the next crash makes dead. All that ran beside the one
// that is to blame are, so they run one at a time.
func suspectCases() []testCase {
	return []testCase{
		{"C9_SuspectsRunOneByOne", Config{}, suspectsRunOneByOne},
		{"C9_SuspectsHoldNobodyElse", Config{}, suspectsHoldNobodyElse},
		{"C9_OnlyARunningSuspectHolds", Config{}, onlyARunningSuspectHolds},
		{"C9_SuspectsGoOnWhenOneEnds", Config{}, suspectsGoOn},
		{"C9_NobodyIsSuspectedWithoutACrash", Config{}, nobodyIsSuspected},
		{"C9_SuspectsAreExplained", Config{}, suspectsAreExplained},
		{"C9_SuspectsAreCounted", Config{}, suspectsAreCounted},
		{"C9_SuspectsAfterACrash", Config{}, suspectsAfterACrash},
	}
}

// suspects are n tasks that have run beside each other when their worker was lost,
// again and again, but for the last time.
func (c *trial) suspects(n int, o queue.Options) (ids []queue.ID) {
	c.Helper()
	ids = c.several(n, o)
	for range attempts - 1 {
		c.claimAll(ids...)
		c.expireLeases()
	}
	return ids
}

// running claims tasks, which must be all of the usual kind that may start.
func (c *trial) claimAll(ids ...queue.ID) []queue.Task {
	c.Helper()
	tasks := c.claim(len(ids) + 1)
	if len(tasks) != len(ids) {
		c.Fatalf("%d tasks run side by side, and not %d", len(tasks), len(ids))
	}
	return tasks
}

// suspectsRunOneByOne has one of many tasks kill its worker whenever it runs: it
// is the only one that dies of that.
func suspectsRunOneByOne(c *trial) {
	c.register(worker, kind)
	ids := c.suspects(5, queue.Options{})
	poison := ids[2]
	for _, id := range ids {
		tasks := c.started(9, id)
		c.started(9) // nor by another claim
		for _, other := range ids {
			if t := c.task(other); t.State.Pending() {
				c.heldBy(other, queue.HoldSuspect)
			}
		}
		if id == poison {
			c.expireLeases()
			continue
		}
		c.succeeds(tasks[0])
	}
	c.is(queue.Dead, poison)
	c.is(queue.Succeeded, slices.DeleteFunc(ids, func(id queue.ID) bool { return id == poison })...)
}

// suspectsHoldNobodyElse shows that all others go by: those that have crashed
// less, those of other queues, and younger ones of the same tier and key.
func suspectsHoldNobodyElse(c *trial) {
	fewer := c.severalSpecs(2, queue.Spec{Kind: "patient", Options: queue.Options{MaxCrashes: attempts + 1}})
	for range attempts - 1 {
		c.claim(9, "patient")
		c.expireLeases()
	}
	ids := c.suspects(2, queue.Options{})
	elsewhere := c.add(queue.Options{Queue: "elsewhere"})
	fresh := c.several(2, queue.Options{})
	c.started(1, ids[0])
	c.is(queue.Waiting, slices.Concat(fewer, fresh, []queue.ID{elsewhere})...)
	tasks := c.claim(9, kind, "patient")
	if got, want := idsOf(tasks), slices.Concat(fewer, fresh); !slices.Equal(got, want) {
		c.Errorf("beside a suspect start\n%v, want\n%v", got, want)
	}
	if got := idsOf(c.claimFrom("elsewhere", 9)); !slices.Equal(got, []queue.ID{elsewhere}) {
		c.Errorf("of another queue start %v", got)
	}
	c.heldBy(ids[1], queue.HoldSuspect)
}

// onlyARunningSuspectHolds shows that suspects which cannot start, for whatever
// reason, keep no others from it.
func onlyARunningSuspectHolds(c *trial) {
	specs := []queue.Spec{{Kind: "rare"}, {Options: queue.Options{Key: "k"}}, {}, {}, {}, {}}
	ids := make([]queue.ID, len(specs))
	for i, s := range specs {
		ids[i] = c.severalSpecs(1, s)[0]
	}
	for range attempts - 1 {
		if n := len(c.claim(9, kind, "rare")); n != len(ids) {
			c.Fatalf("%d tasks run side by side, and not %d", n, len(ids))
		}
		c.expireLeases()
	}
	paused, next, others := ids[2], ids[3], ids[4:]
	c.command(queue.OrderPause, paused)
	c.configure(queue.Settings{PerKey: 1})
	busy := c.started(1, c.add(queue.Options{Key: "k", Tier: stint.High}))[0]
	c.heldBy(ids[1], queue.HoldKey)
	t := c.started(9, next)[0]
	for _, id := range slices.Concat(ids[:2], others) {
		c.heldBy(id, queue.HoldSuspect)
	}
	c.succeeds(busy) // its key is free: it is a suspect yet
	c.started(9)
	c.command(queue.OrderResume, paused)
	c.heldBy(paused, queue.HoldSuspect)
	c.command(queue.OrderCancel, others[0])
	c.is(queue.Cancelled, others[0])
	c.succeeds(t)
	c.is(queue.Waiting, ids[0], ids[1], paused, others[1])
	if got := idsOf(c.claim(9, "rare")); !slices.Equal(got, ids[:1]) {
		c.Errorf("for those who know it, %v is next", got)
	}
}

// suspectsGoOn shows that every way in which one ends lets the next one go.
func suspectsGoOn(c *trial) {
	ids := c.suspects(6, queue.Options{MaxAttempts: 100})
	later := c.now.Add(24 * time.Hour)
	first := c.started(9, ids[0])[0]
	ready := c.listen(queue.DefaultQueue)
	drain(ready)
	c.fails(first, queue.Outcome{RunAt: later})
	c.awaitSignal(ready, "that the next one may start")
	c.ok("snooze", c.settle(c.started(9, ids[1])[0], queue.Outcome{Kind: queue.OutcomeSnooze, RunAt: later}))
	c.releases(c.started(9, ids[2])[0])
	c.succeeds(c.started(9, ids[2])[0])
	third := c.started(9, ids[3])[0]
	c.command(queue.OrderPause, ids[3])
	c.releases(third)
	c.started(9, ids[4])
	c.expireLeases()
	c.is(queue.Dead, ids[4])
	c.succeeds(c.started(9, ids[5])[0])

	// Who has come to an end is no suspect any more, however that was.
	c.command(queue.OrderRetry, ids[0], ids[1], ids[4])
	c.command(queue.OrderResume, ids[3])
	c.started(9, ids[0], ids[1], ids[3], ids[4])
}

// nobodyIsSuspected shows that what dies of its first crash, and what has not
// crashed, is not held.
func nobodyIsSuspected(c *trial) {
	once := c.several(3, queue.Options{MaxCrashes: 1})
	c.started(9, once...)
	c.expireLeases()
	c.is(queue.Dead, once...)
	twice := c.severalSpecs(3, queue.Spec{Payload: []byte("other"), Options: queue.Options{MaxCrashes: 2}})
	c.started(9, twice...)
	c.expireLeases()
	c.started(9, twice[0])
}

func suspectsAreExplained(c *trial) {
	c.register(worker, kind)
	ids := c.suspects(3, queue.Options{Key: "k"})
	c.configure(queue.Settings{PerKey: 1})
	c.started(1, c.add(queue.Options{Tier: stint.High})) // which has nothing to do with it
	c.started(9, ids[0])
	c.register(worker, kind)
	r := c.firstReason(ids[1], stint.Code(queue.HoldSuspect))
	if !slices.Equal(r.Holders, ids[:1]) {
		c.Errorf("the reason is %+v", r)
	}
	if r := c.anyReason(ids[1], stint.Code(queue.HoldKey)); r.Limit != 1 {
		c.Errorf("the other reason is %+v", r)
	}
	c.pause(queue.DefaultQueue, &queue.Pause{By: "alice"})
	c.firstReason(ids[1], stint.Code(queue.HoldQueuePaused))
	c.anyReason(ids[1], stint.Code(queue.HoldSuspect))
}

// suspectsAreCounted shows that one which is held for two reasons is counted once,
// and yet when one of them has passed.
func suspectsAreCounted(c *trial) {
	ids := c.suspects(4, queue.Options{Key: "k"})
	c.configure(queue.Settings{KeyRate: queue.Rate{PerSecond: 1}})
	c.started(1, ids[0])
	other := c.add(queue.Options{})
	for range 2 {
		stats := c.stats()
		counts := stats.Queues[queue.DefaultQueue]
		if held, waiting := counts.States[queue.Held], counts.States[queue.Waiting]; held != 3 || waiting != 1 {
			c.Errorf("%d tasks are held and %d wait, want 3 and 1", held, waiting)
		}
		if want := c.task(other).Changed; !counts.Oldest.Equal(want) {
			c.Errorf("the oldest waits since %v, want %v", counts.Oldest, want)
		}
		c.pass(2 * time.Second) // when the rate allows another one
	}
}

// suspectsAfterACrash shows that a store which is opened again knows them, whether
// they waited or ran.
func suspectsAfterACrash(c *trial) {
	ids := c.suspects(4, queue.Options{})
	running := c.claimRemote()
	for range 2 {
		if !c.crash() || c.mayForgetClaims() {
			return
		}
		c.is(queue.Running, running.ID)
		c.heldBy(ids[1], queue.HoldSuspect)
		c.started(9)
		c.check()
	}
	c.succeeds(running)
	second := c.started(9, ids[1])[0]
	if !c.crash() {
		return
	}
	if c.Remote {
		c.expireLeases()
	}
	c.is(queue.Dead, second.ID)
	c.started(9, ids[2])
}
