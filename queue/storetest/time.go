package storetest

import (
	"time"

	"github.com/stintgo/stint/queue"
)

func timeCases() []testCase {
	return []testCase{
		{"C8_DelayedStart", Config{}, delayedStart},
		{"C8_Deadline", Config{}, deadline},
		{"C8_DeadlineHoldsWithoutMaintain", Config{}, deadlineWithoutMaintain},
		{"C8_DeadlineIsForEveryStart", Config{}, deadlineForEveryStart},
		{"C8_MaintainReturnsNext", Config{}, maintainReturnsNext},
		{"C8_MaintainIsLimited", Config{}, maintainIsLimited},
		{"C3_RetentionByAge", Config{}, retentionByAge},
		{"C3_RetentionByCount", Config{}, retentionByCount},
		{"C3_RetentionUnlessSet", Config{}, retentionUnlessSet},
	}
}

func delayedStart(c *trial) {
	at := c.now.Add(time.Hour)
	id := c.add(queue.Options{RunAt: at})
	now := c.add(queue.Options{RunAt: c.now}) // due at once
	past := c.add(queue.Options{RunAt: c.now.Add(-time.Hour)})
	c.is(queue.Scheduled, id)
	for _, t := range c.started(5, now, past) {
		c.succeeds(t)
	}
	c.pass(time.Hour - 1)
	c.maintain()
	c.started(5)
	c.pass(1)
	c.maintain()
	if t := c.task(id); t.State != queue.Waiting || t.Steps[1].On != queue.OnDue {
		c.Errorf("at its RunAt it is %s\n%s", t.State, life(t))
	}
	c.started(5, id)
}

func deadline(c *trial) {
	at := c.now.Add(time.Minute)
	first := c.add(queue.Options{Deadline: at})
	ids := []queue.ID{
		c.add(queue.Options{Deadline: at}), c.add(queue.Options{Deadline: at, After: []queue.ID{first}}),
		c.add(queue.Options{Deadline: at}), c.add(queue.Options{RunAt: at.Add(-1), Deadline: at}),
	}
	later := c.add(queue.Options{Deadline: at.Add(1)})
	c.command(queue.OrderPause, ids[2])
	running := c.claimOne()
	c.pass(time.Minute - 2)
	c.heartbeat(running, queue.Heartbeat{Lease: time.Hour})
	c.maintain()
	c.is(queue.Waiting, ids[0])
	c.is(queue.Held, ids[1])
	c.is(queue.Paused, ids[2])
	c.is(queue.Scheduled, ids[3])
	c.pass(2)
	c.maintain()
	c.is(queue.Dead, ids...)
	c.is(queue.Running, first) // it started before its deadline
	c.is(queue.Waiting, later)
	t := c.task(ids[0])
	if s := t.Steps[len(t.Steps)-1]; s.On != queue.OnExpire || t.Failures != 0 || t.Error == "" {
		c.Errorf("the task is %+v", t)
	}
	past := c.add(queue.Options{Deadline: c.now.Add(-time.Hour)}) // accepted, and dead at the next call
	c.maintain()
	c.is(queue.Dead, past)
}

func deadlineWithoutMaintain(c *trial) {
	late := c.add(queue.Options{Deadline: c.now.Add(time.Second)})
	second := c.add(queue.Options{})
	c.pass(time.Second)
	c.started(5, second)
	c.maintain()
	c.is(queue.Dead, late)
}

func deadlineForEveryStart(c *trial) {
	id := c.add(queue.Options{Deadline: c.now.Add(time.Minute), MaxAttempts: 10})
	c.fails(c.claimOne(), queue.Outcome{})
	c.is(queue.Waiting, id)
	t := c.claimOne()
	c.pass(time.Minute)
	c.maintain() // also ends the lease
	c.maintain()
	c.is(queue.Dead, id)
	c.refused("late", c.settle(t, queue.Outcome{Kind: queue.OutcomeSuccess}), queue.ErrStale)
}

// maintainReturnsNext shows that the time that Maintain returns is in the future, and not
// after the next time at which something is due.
func maintainReturnsNext(c *trial) {
	if next := c.maintain(); !next.IsZero() {
		c.Errorf("Maintain of an empty store returns %v", next)
	}
	returns := func(want time.Time, why string) {
		c.Helper()
		if next := c.maintain(); next.IsZero() || next.After(want) || !next.After(c.now) {
			c.Errorf("%s is at %v, but Maintain at %v returns %v", why, want, c.now, next)
		}
	}
	c.addSpec(queue.Spec{Kind: "other", Options: queue.Options{Deadline: c.now.Add(time.Hour)}})
	returns(c.now.Add(time.Hour), "a deadline")
	c.add(queue.Options{RunAt: c.now.Add(time.Minute)})
	returns(c.now.Add(time.Minute), "a delay's end")
	c.add(queue.Options{})
	t := c.claimWith(queue.Claim{Max: 1, Lease: time.Second}).Tasks[0]
	returns(c.now.Add(time.Second), "a lease's end")
	c.configure(queue.Settings{Keep: queue.Retention{Age: time.Millisecond}})
	c.succeeds(t)
	returns(c.now.Add(time.Millisecond), "a finished task's end")
	c.command(queue.OrderForget, t.ID)
	c.pass(time.Minute)
	returns(c.now.Add(time.Hour-time.Minute), "the deadline that is left")
	for _, t := range c.find(queue.Filter{}) {
		c.command(queue.OrderCancel, t.ID)
		c.command(queue.OrderForget, t.ID)
	}
	c.pass(time.Hour)
	if next := c.maintain(); !next.IsZero() {
		c.Errorf("Maintain of an emptied store returns %v", next)
	}
}

func maintainIsLimited(c *trial) {
	const all = 10
	for range all {
		c.add(queue.Options{RunAt: c.now.Add(time.Second)})
	}
	c.pass(time.Second)
	waiting := queue.Filter{States: []queue.State{queue.Waiting}}
	for done := 0; done < all; {
		next, err := c.Store.Maintain(c.Context(), c.now, 3)
		c.ok("Maintain", err)
		n := len(c.find(waiting)) - done
		if done += n; n < 1 || n > 3 {
			c.Fatalf("Maintain with a limit of 3 makes %d changes", n)
		}
		if more := !next.IsZero() && !next.After(c.now); done < all && !more {
			c.Fatalf("after %d of %d changes Maintain returns %v, want a time that has come", done, all, next)
		}
	}
}

func retentionByAge(c *trial) {
	c.configure(queue.Settings{
		Keep: queue.Retention{Age: time.Hour}, KeepDead: queue.Retention{Age: 2 * time.Hour},
	})
	succeeded, dead, cancelled := c.addInState(queue.Succeeded), c.addInState(queue.Dead), c.addInState(queue.Cancelled)
	waiting := c.add(queue.Options{Unique: "u"})
	c.pass(time.Hour - 1)
	c.maintain()
	c.is(queue.Succeeded, succeeded)
	c.is(queue.Cancelled, cancelled)
	c.pass(1)
	c.maintain()
	c.gone(succeeded, cancelled)
	c.is(queue.Dead, dead)
	c.pass(time.Hour)
	if next := c.maintain(); !next.IsZero() {
		c.Errorf("Maintain returns %v, want none", next)
	}
	c.gone(dead)
	c.is(queue.Waiting, waiting) // unfinished tasks are not forgotten
}

func retentionByCount(c *trial) {
	c.configure(queue.Settings{Keep: queue.Retention{Count: 3}, KeepDead: queue.Retention{Count: 1}})
	var kept, dead []queue.ID
	for range 4 {
		kept = append(kept, c.addInState(queue.Succeeded))
		c.pass(time.Second)
		dead = append(dead, c.addInState(queue.Dead))
		c.pass(time.Second)
	}
	kept = append(kept, c.addInState(queue.Cancelled))
	other := c.add(queue.Options{Queue: "other"})
	c.command(queue.OrderCancel, other)
	c.maintain()
	c.gone(append(kept[:2:2], dead[:3]...)...)
	c.is(queue.Succeeded, kept[2:4]...)
	c.is(queue.Cancelled, kept[4], other)
	c.is(queue.Dead, dead[3])
}

func retentionUnlessSet(c *trial) {
	succeeded, dead := c.addInState(queue.Succeeded), c.addInState(queue.Dead)
	const day = 24 * time.Hour
	c.pass(day - 1)
	c.maintain()
	c.is(queue.Succeeded, succeeded)
	c.pass(1)
	c.maintain()
	c.gone(succeeded)
	c.pass(29*day - 1)
	c.maintain()
	c.is(queue.Dead, dead)
	c.pass(1)
	c.maintain()
	c.gone(dead)
}
