package storetest

import (
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// suspectCases test suspects: tasks that have crashed and that the next crash makes dead.
// A crash makes suspects of all tasks that its worker ran, so suspects run one at a time,
// which singles out the task that causes the crashes.
func suspectCases() []testCase {
	return []testCase{
		{"C9_SuspectsRunOneByOne", Config{}, suspectsRunOneByOne},
		{"C9_SuspectsHoldOnlySuspects", Config{}, suspectsHoldOnlySuspects},
		{"C9_OnlyARunningSuspectHolds", Config{}, onlyARunningSuspectHolds},
		{"C9_SuspectsGoOnWhenOneEnds", Config{}, suspectsGoOn},
		{"C9_NoSuspectWithoutACrash", Config{}, noSuspectWithoutACrash},
		{"C9_SuspectsAreExplained", Config{}, suspectsAreExplained},
		{"C9_SuspectsAreCounted", Config{}, suspectsAreCounted},
		{"C9_SuspectsAfterACrash", Config{}, suspectsAfterACrash},
	}
}

// suspects makes n suspects: tasks that ran at the same time in each of attempts-1 crashes.
func (c *trial) suspects(n int, o queue.Options) (ids []queue.ID) {
	c.Helper()
	ids = c.several(n, o)
	for range attempts - 1 {
		c.claimAll(ids...)
		c.expireLeases()
	}
	return ids
}

// claimAll claims all tasks of the default kind; there must be as many as ids.
func (c *trial) claimAll(ids ...queue.ID) []queue.Task {
	c.Helper()
	tasks := c.claim(len(ids) + 1)
	if len(tasks) != len(ids) {
		c.Fatalf("%d tasks run at the same time, want %d", len(tasks), len(ids))
	}
	return tasks
}

// suspectsRunOneByOne shows that of several suspects only the one that crashes its worker
// becomes dead.
func suspectsRunOneByOne(c *trial) {
	c.register(worker, kind)
	ids := c.suspects(5, queue.Options{})
	poison := ids[2]
	for _, id := range ids {
		tasks := c.started(9, id)
		c.started(9) // a second claim starts none either
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

// suspectsHoldOnlySuspects shows that a running suspect does not hold tasks that have
// crashed less, tasks of other queues, and younger tasks of the same tier and key.
func suspectsHoldOnlySuspects(c *trial) {
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
		c.Errorf("beside a running suspect start\n%v, want\n%v", got, want)
	}
	if got := idsOf(c.claimFrom("elsewhere", 9)); !slices.Equal(got, []queue.ID{elsewhere}) {
		c.Errorf("of the other queue start %v", got)
	}
	c.heldBy(ids[1], queue.HoldSuspect)
}

// onlyARunningSuspectHolds shows that suspects that cannot start, whatever the reason, do
// not hold other suspects.
func onlyARunningSuspectHolds(c *trial) {
	specs := []queue.Spec{{Kind: "rare"}, {Options: queue.Options{Key: "k"}}, {}, {}, {}, {}}
	ids := make([]queue.ID, len(specs))
	for i, s := range specs {
		ids[i] = c.severalSpecs(1, s)[0]
	}
	for range attempts - 1 {
		if n := len(c.claim(9, kind, "rare")); n != len(ids) {
			c.Fatalf("%d tasks run at the same time, want %d", n, len(ids))
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
	c.succeeds(busy) // its key is free, but ids[1] is still held as a suspect
	c.started(9)
	c.command(queue.OrderResume, paused)
	c.heldBy(paused, queue.HoldSuspect)
	c.command(queue.OrderCancel, others[0])
	c.is(queue.Cancelled, others[0])
	c.succeeds(t)
	c.is(queue.Waiting, ids[0], ids[1], paused, others[1])
	if got := idsOf(c.claim(9, "rare")); !slices.Equal(got, ids[:1]) {
		c.Errorf("a claim of the rare kind returns %v", got)
	}
}

// suspectsGoOn shows that the next suspect starts after every kind of end of the running
// one.
func suspectsGoOn(c *trial) {
	ids := c.suspects(6, queue.Options{MaxAttempts: 100})
	later := c.now.Add(24 * time.Hour)
	first := c.started(9, ids[0])[0]
	l := c.listen(queue.DefaultQueue)
	l.drain()
	c.fails(first, queue.Outcome{RunAt: later})
	l.await("the failure of a suspect")
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

	// A failure, a snooze and the retry of a dead task reset the count of crashes, so these
	// tasks start together with the one remaining suspect, ids[3].
	c.command(queue.OrderRetry, ids[0], ids[1], ids[4])
	c.command(queue.OrderResume, ids[3])
	c.started(9, ids[0], ids[1], ids[3], ids[4])
}

// noSuspectWithoutACrash shows that tasks that have not crashed are not held, also if one
// crash makes them dead.
func noSuspectWithoutACrash(c *trial) {
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
	c.started(1, c.add(queue.Options{Tier: stint.High})) // not a suspect
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

// suspectsAreCounted shows that Stats counts a task with two holds once, and still counts
// it as held when one of the holds has ended.
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
			c.Errorf("the oldest task has waited since %v, want %v", counts.Oldest, want)
		}
		c.pass(2 * time.Second) // the rate allows another start
	}
}

// suspectsAfterACrash shows that a reopened store knows its suspects, whether they waited
// or ran.
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
