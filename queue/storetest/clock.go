package storetest

import (
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// clockCases open a store with a clock that is behind that of the process before. Names are made of parts, as in
// C3_RetentionAfterAClockAheadByAnHour.
func clockCases() (cases []testCase) {
	const year = 365 * 24 * time.Hour
	for _, clock := range []struct {
		name string
		by   time.Duration
	}{{"AMinute", time.Minute}, {"AnHour", time.Hour}, {"AYear", year}} {
		name, by := "AfterAClockAheadBy"+clock.name, clock.by
		cases = append(
			cases,
			testCase{"C8_Delay" + name, Config{}, func(c *trial) { delayAfterAClockAhead(c, by) }},
			testCase{"C8_NewTimes" + name, Config{}, func(c *trial) { newTimesAfterAClockAhead(c, by) }},
			testCase{"C8_Edits" + name, Config{}, func(c *trial) { editsAfterAClockAhead(c, by) }},
			testCase{"C4_Steps" + name, Config{}, func(c *trial) { stepsAfterAClockAhead(c, by) }},
			testCase{"C3_Retention" + name, Config{}, func(c *trial) { retentionAfterAClockAhead(c, by) }},
		)
	}
	return append(
		cases,
		testCase{"C3_RetentionByAClockAYearAhead", Config{}, retentionByAClockAhead},
		testCase{"C8_DelaysAndAClockThatDrifts", Config{}, driftingClock},
		testCase{"C4_LossIsDatedAtTheFirstCall", Config{}, lossIsDated},
		testCase{"C8_FirstCallIsAHeartbeat", Config{}, func(c *trial) {
			firstCallCorrects(c, func() { c.register("w", kind) })
		}},
		testCase{"C8_FirstCallIsAClaimOfNothing", Config{}, func(c *trial) {
			firstCallCorrects(c, func() { c.claimWith(queue.Claim{Max: 1, Kinds: []string{"other"}}) })
		}},
	)
}

// delayAfterAClockAhead shows that delays that began under the wrong clock keep their
// length, and that a RunAt that was set under the right clock does not change.
func delayAfterAClockAhead(c *trial, by time.Duration) {
	begun := c.now
	early := c.add(queue.Options{RunAt: c.now.Add(by + 10*time.Second)})
	var retried, delayed, paused queue.ID
	survived := c.withClockAhead(by, func() {
		retried = c.add(queue.Options{})
		c.fails(c.claimOne(), queue.Outcome{RunAt: c.now.Add(time.Hour)})
		delayed = c.add(queue.Options{RunAt: c.now.Add(2 * time.Hour)})
		paused = c.add(queue.Options{RunAt: c.now.Add(3 * time.Hour)})
		c.command(queue.OrderPause, paused)
		c.pass(5 * time.Second)
		c.addSpec(queue.Spec{Kind: "last"})
	})
	if !survived {
		return
	}
	c.command(queue.OrderResume, paused)
	next := c.maintain()
	if t := c.task(delayed); !t.RunAt.Equal(begun.Add(2*time.Hour)) || t.State != queue.Scheduled {
		c.Errorf("a task that was delayed by 2 h is %s, with RunAt after %v", t.State, t.RunAt.Sub(begun))
	}
	due := map[time.Duration]queue.ID{
		by + 10*time.Second: early, time.Hour: retried, 2 * time.Hour: delayed, 3 * time.Hour: paused,
	}
	order := slices.Sorted(maps.Keys(due))
	if first := begun.Add(order[0]); next.IsZero() || next.After(first) {
		c.Errorf("Maintain returns %v, want %v at the latest", next, first)
	}
	for _, after := range order {
		c.startsAt(begun.Add(after), due[after])
	}
}

// newTimesAfterAClockAhead shows that delays, backoff, leases and rates that begin after
// the clock has been corrected have their usual length.
func newTimesAfterAClockAhead(c *trial, by time.Duration) {
	survived := c.withClockAhead(by, func() {
		c.configure(queue.Settings{Rate: queue.Rate{PerSecond: 1}})
		c.add(queue.Options{})
		c.succeeds(c.claimOne())
	})
	if !survived {
		return
	}
	ids := c.submit(queue.Options{}, queue.Options{}, queue.Options{RunAt: c.now.Add(time.Minute)})
	first := c.claimOne()
	claimed := c.claimWith(queue.Claim{Max: 1})
	if len(claimed.Tasks) > 0 || !claimed.Next.Equal(c.now.Add(time.Second)) {
		c.Errorf("with a rate of 1/s, a second claim returns %d tasks, and Next after %v",
			len(claimed.Tasks), claimed.Next.Sub(c.now))
	}
	c.fails(first, queue.Outcome{RunAt: c.now.Add(10 * time.Second)})
	c.pass(time.Second)
	second := c.started(9, ids[1])[0]
	if until := second.Lease.Until; !until.Equal(c.now.Add(lease)) {
		c.Errorf("a lease of %s lasts for %s", lease, until.Sub(c.now))
	}
	c.startsAt(c.now.Add(9*time.Second), first.ID)
	c.startsAt(c.now.Add(50*time.Second), ids[2])
	c.is(queue.Running, ids[1])
	c.pass(time.Second)
	c.maintain()
	if t := c.task(ids[1]); t.Crashes != 1 {
		c.Errorf("after its lease, a task is %s and has %d crashes", t.State, t.Crashes)
	}
}

// stepsAfterAClockAhead shows that no task has a time in the future, and that the times of
// its steps do not decrease.
func stepsAfterAClockAhead(c *trial, by time.Duration) {
	begun := c.now
	straddles := c.add(queue.Options{})
	var remote queue.Task
	survived := c.withClockAhead(by, func() {
		c.fails(c.claimOne(), queue.Outcome{})
		c.pass(time.Second)
		c.succeeds(c.claimOne())
		for _, state := range queue.States() {
			c.addInState(state)
			c.pass(time.Second)
		}
		c.addSpec(queue.Spec{Kind: "remote"})
		claim := queue.Claim{Queue: queue.DefaultQueue, Kinds: []string{"remote"}, Max: 1, Remote: true}
		remote = c.claimWith(claim).Tasks[0]
	})
	if !survived {
		return
	}
	for range 2 { // reopening a second time changes nothing
		c.maintain()
		for _, t := range c.find(queue.Filter{}) {
			before := begun
			for _, s := range t.Steps {
				if s.At.Before(before) || s.At.After(c.now) {
					c.Errorf("at %v, step %s of task %s has the time %v", c.now.Sub(begun), s.On, t.ID, s.At.Sub(begun))
				}
				before = s.At
			}
			if !t.Changed.Equal(before) || !t.Submitted.Equal(t.Steps[0].At) {
				c.Errorf("task %s was submitted at %v and changed at %v\n%s", t.ID, t.Submitted, t.Changed, life(t))
			}
		}
		if !c.crash() {
			return
		}
	}
	if t := c.task(straddles); t.Steps[1].At.Sub(begun) > time.Second {
		c.Errorf("a task was claimed %v after its submission\n%s", t.Steps[1].At.Sub(begun), life(t))
	}
	if !c.mayForgetClaims() {
		c.succeeds(remote)
	}
}

// retentionAfterAClockAhead shows that finished tasks are kept for their age, counted from
// their corrected end.
func retentionAfterAClockAhead(c *trial, by time.Duration) {
	age := queue.Retention{Age: 10 * time.Minute}
	c.configure(queue.Settings{Keep: age, KeepDead: age})
	var ended []queue.ID
	survived := c.withClockAhead(by, func() {
		ended = []queue.ID{c.addInState(queue.Succeeded), c.addInState(queue.Dead)}
		c.pass(time.Second)
		c.addSpec(queue.Spec{Kind: "last"})
	})
	if !survived {
		return
	}
	c.maintain()
	c.pass(10*time.Minute - time.Second - 1)
	c.maintain()
	c.is(queue.Succeeded, ended[0])
	c.is(queue.Dead, ended[1])
	c.pass(1)
	c.maintain()
	c.gone(ended...)
}

// retentionByAClockAhead shows that tasks whose age passes while the store is closed are
// kept for another hour, so that they survive one opening with a clock that is ahead.
func retentionByAClockAhead(c *trial) {
	const year = 365 * 24 * time.Hour
	age := queue.Retention{Age: 10 * time.Minute}
	c.configure(queue.Settings{Keep: age, KeepDead: age})
	ended, dead := c.addInState(queue.Succeeded), c.addInState(queue.Dead)
	if !c.crash() {
		return
	}
	c.pass(year)
	c.maintain()
	c.pass(time.Hour - 1)
	c.maintain()
	later := c.addInState(queue.Cancelled)
	if !c.crash() {
		return
	}
	c.pass(time.Minute - year - time.Hour)
	c.maintain()
	c.is(queue.Dead, dead)
	c.pass(9*time.Minute + 1)
	c.maintain()
	c.gone(ended, dead)
	if !c.crash() {
		return
	}
	c.pass(10 * time.Minute)
	c.maintain()
	c.is(queue.Cancelled, later)
	c.pass(time.Hour)
	c.maintain()
	c.gone(later)
}

// driftingClock shows that a task starts at its RunAt if the clock of each process is a
// little behind, or ahead of, that of the process before.
func driftingClock(c *trial) {
	const opened, each = 20, 100 * time.Millisecond
	slow := c.add(queue.Options{RunAt: c.now.Add(opened * (time.Second - each))})
	for range opened {
		c.maintain()
		c.is(queue.Scheduled, slow)
		c.pass(time.Second)
		c.addSpec(queue.Spec{Kind: "other"}) // the store learns the time from it
		if !c.crash() {
			return
		}
		c.pass(-each)
	}
	c.maintain()
	c.succeeds(c.started(1, slow)[0])
	fast := c.add(queue.Options{RunAt: c.now.Add(10 * (time.Second + each))})
	for range 10 {
		c.maintain()
		c.is(queue.Scheduled, fast)
		c.pass(time.Second)
		if !c.crash() {
			return
		}
		c.pass(each)
	}
	c.maintain()
	c.started(1, fast)
}

// lossIsDated shows that the loss of a lease that ended with its process has the time of
// the first call after reopening, and that the claim keeps its time.
func lossIsDated(c *trial) {
	id, other := c.add(queue.Options{}), c.add(queue.Options{})
	c.command(queue.OrderPause, other)
	c.pass(time.Second)
	claimed := c.now
	c.claimOne()
	c.pass(time.Second)
	c.command(queue.OrderResume, other)
	if !c.crash() || c.mayForgetClaims() {
		return
	}
	c.pass(4 * time.Second)
	if c.Remote {
		c.expireLeases()
	}
	c.maintain()
	t := c.task(id)
	last := len(t.Steps) - 1
	if claim := t.Steps[last-1]; claim.On != queue.OnClaim || !claim.At.Equal(claimed) {
		c.Errorf("a claim at %v is %+v", claimed, claim)
	}
	if lost := t.Steps[last]; lost.On != queue.OnLost || !lost.At.Equal(c.now) || !t.Changed.Equal(c.now) {
		c.Errorf("a loss at %v is %+v, and the task changed at %v", c.now, lost, t.Changed)
	}
	if !c.crash() {
		return
	}
	c.pass(time.Second)
	c.maintain()
	if again := c.task(id); !again.Steps[last].At.Equal(t.Changed) {
		c.Errorf("after reopening again, the loss is at %v, want %v", again.Steps[last].At, t.Changed)
	}
}

// firstCallCorrects shows that the first call after reopening, whatever it is, corrects
// times for good: a crash after its return neither restores a time of the wrong clock nor
// changes the time of a loss.
func firstCallCorrects(c *trial, call func()) {
	begun := c.now
	var delayed, lost queue.ID
	survived := c.withClockAhead(time.Hour, func() {
		lost = c.add(queue.Options{MaxCrashes: 1})
		c.claimOne()
		delayed = c.add(queue.Options{RunAt: c.now.Add(10 * time.Minute)})
	})
	if !survived {
		return
	}
	call()
	if !c.crash() {
		return
	}
	c.pass(time.Minute)
	c.maintain()
	if t := c.task(delayed); !t.Submitted.Equal(begun) || !t.RunAt.Equal(begun.Add(10*time.Minute)) {
		c.Errorf("a task that was delayed by 10 min was submitted at %v, with RunAt %v",
			t.Submitted.Sub(begun), t.RunAt.Sub(begun))
	}
	if t := c.task(lost); t.State == queue.Dead && !c.Remote && !t.Changed.Equal(begun) {
		c.Errorf("the loss of a lease before the first call, at 0, has the time %v\n%s", t.Changed.Sub(begun), life(t))
	}
}
