package storetest

import (
	"time"

	"github.com/stintgo/stint/queue"
)

func uniqueCases() []testCase {
	return []testCase{
		{"C7_UniqueForAPeriod", Config{}, uniqueForAPeriod},
		{"C7_UniqueForEndsWithAPurge", Config{}, uniqueForEndsWithAPurge},
		{"C7_UniqueForInvalid", Config{}, uniqueForInvalid},
	}
}

// uniqueForAPeriod shows that Submit returns the first task's ID for its Unique during
// UniqueFor, also after that task has been forgotten, and not longer.
func uniqueForAPeriod(c *trial) {
	c.configure(queue.Settings{Keep: queue.Retention{Age: time.Minute, Count: 2}})
	first := c.add(queue.Options{Unique: "hour", UniqueFor: time.Hour})
	short := c.add(queue.Options{Unique: "short"})
	for range 5 {
		c.add(queue.Options{})
	}
	for _, t := range c.claim(7) {
		c.succeeds(t)
	}
	c.maintain()
	c.gone(first, short)
	c.submitUnique(first, queue.Options{Unique: "hour"})
	c.submitUnique(queue.ID{}, queue.Options{Unique: "hour", Queue: "other"})
	c.submitUnique(queue.ID{}, queue.Options{Unique: "short"})
	if c.Durable && c.crash() {
		c.submitUnique(first, queue.Options{Unique: "hour"})
	}
	after := c.fresh(queue.Options{Unique: "hour"})
	next := c.fresh(queue.Options{After: []queue.ID{after.ID}})
	c.submitRefused("Submit of a task after a forgotten one", queue.ErrInvalid, after, next)
	again := queue.NewTask{ID: first, Spec: after.Spec} // a call whose answer was lost, repeated very late
	last := c.fresh(queue.Options{After: []queue.ID{first}})
	c.submitRefused("Submit of a task after a forgotten one of the same call", queue.ErrInvalid, again, last)
	next = c.fresh(queue.Options{AfterAny: []queue.ID{after.ID}})
	c.submitTasks(after, next)
	c.is(queue.Waiting, next.ID)
	c.pass(time.Hour - time.Nanosecond)
	c.maintain()
	c.submitUnique(first, queue.Options{Unique: "hour"})
	c.pass(time.Nanosecond)
	c.submitUnique(queue.ID{}, queue.Options{Unique: "hour", UniqueFor: time.Minute})
	if c.Durable && c.crash() {
		c.maintain()
		c.pass(2 * time.Hour)
		if next := c.maintain(); !next.IsZero() && !next.After(c.now) {
			c.Errorf("Maintain returns %v; the time is %v", next, c.now)
		}
	}
}

// submitUnique submits a task, whose receipt must have the ID want as an existing task, or
// be new if want is zero.
func (c *trial) submitUnique(want queue.ID, o queue.Options) {
	c.Helper()
	t := c.fresh(o)
	r := c.submitTasks(t)[0]
	if want.IsZero() {
		want = t.ID
	}
	if r.ID != want || r.Existing != (want != t.ID) {
		c.Errorf("the receipt of task %s is %+v, want the ID %s", t.ID, r, want)
	}
}

// uniqueForEndsWithAPurge shows that a purge of a task frees its Unique.
func uniqueForEndsWithAPurge(c *trial) {
	first := c.add(queue.Options{Unique: "hour", UniqueFor: time.Hour})
	c.dies()
	c.submitUnique(first, queue.Options{Unique: "hour"})
	c.command(queue.OrderForget, first)
	c.submitUnique(queue.ID{}, queue.Options{Unique: "hour"})
}

func uniqueForInvalid(c *trial) {
	for _, o := range []queue.Options{
		{UniqueFor: time.Hour},
		{Unique: "u", UniqueFor: -1},
		{Unique: "u", UniqueFor: queue.MaxUniqueFor + 1},
	} {
		c.submitRefused("Submit", queue.ErrInvalid, c.fresh(o))
	}
}
