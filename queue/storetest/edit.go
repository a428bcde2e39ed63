package storetest

import (
	"maps"
	"strconv"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// edit edits tasks and returns how many changed.
func (c *trial) edit(e queue.Edit, ids ...queue.ID) int {
	c.Helper()
	return c.commandWith(queue.Command{
		Do: queue.OrderEdit, Edit: &e, Filter: queue.Filter{IDs: ids}, By: "alice", Reason: "why not",
	})
}

// editInEveryState shows that exactly the pending tasks can be edited, and that an edit
// changes only the fields that it sets.
func editInEveryState(c *trial) {
	high, key := stint.High, "k"
	for _, state := range queue.States() {
		id := c.addInState(state)
		before := c.task(id)
		c.pass(time.Second)
		n := c.edit(queue.Edit{Tier: &high, Key: &key, Labels: map[string]string{"a": "b"}}, id)
		after := c.task(id)
		if changes := state.Pending(); n > 0 != changes || after.State != state {
			c.Errorf("an edit of a task that is %s changes %d tasks; the task is then %s", state, n, after.State)
		} else if !changes {
			if after.Tier != before.Tier || after.Key != before.Key || after.Labels != nil {
				c.Errorf("an edit has changed a task that is %s: %+v", state, after.Spec)
			}
			continue
		}
		last := after.Steps[len(after.Steps)-1]
		if after.Tier != high || after.Key != key || !maps.Equal(after.Labels, map[string]string{"a": "b"}) ||
			!after.RunAt.Equal(before.RunAt) || after.Kind != before.Kind || len(after.After) != len(before.After) {
			c.Errorf("after an edit, a task that is %s has %+v", state, after.Spec)
		}
		if last.On != queue.OnEdit || last.To != state || last.By != "alice" || last.Detail != "why not" ||
			!last.At.Equal(c.now) {
			c.Errorf("its last step is %+v", last)
		}
	}
}

// editChangesTheOrder shows that a task keeps its age in its new tier and key.
func editChangesTheOrder(c *trial) {
	high := stint.High
	low, first, second := c.add(queue.Options{Tier: stint.Low}), c.add(queue.Options{}), c.add(queue.Options{})
	third := c.add(queue.Options{Tier: stint.High})
	c.edit(queue.Edit{Tier: &high}, second)
	normal := stint.Normal
	c.edit(queue.Edit{Tier: &normal}, low)
	c.started(4, second, third, low, first)
}

// editOfTimes shows that an edited RunAt and Deadline hold like submitted ones.
func editOfTimes(c *trial) {
	at := func(d time.Duration) *time.Time { return new(c.now.Add(d)) }
	id := c.add(queue.Options{})
	c.edit(queue.Edit{RunAt: at(time.Hour)}, id)
	c.is(queue.Scheduled, id)
	c.edit(queue.Edit{RunAt: at(time.Minute)}, id)
	c.pass(time.Minute)
	c.maintain()
	c.is(queue.Waiting, id)
	c.edit(queue.Edit{RunAt: at(time.Hour)}, id)
	c.edit(queue.Edit{RunAt: new(time.Time{})}, id)
	c.is(queue.Waiting, id)
	if n := c.edit(queue.Edit{RunAt: at(time.Hour), Deadline: at(time.Minute)}, id); n != 0 {
		c.Error("an edit to a deadline before RunAt is accepted")
	}
	c.edit(queue.Edit{Deadline: at(time.Minute)}, id)
	c.edit(queue.Edit{Deadline: at(time.Hour)}, id)
	c.pass(2 * time.Minute)
	c.maintain()
	c.is(queue.Waiting, id)
	c.edit(queue.Edit{Deadline: new(time.Time{})}, id)
	c.pass(2 * time.Hour)
	c.maintain()
	c.is(queue.Waiting, id)
	c.edit(queue.Edit{Deadline: at(time.Minute)}, id)
	c.pass(time.Minute)
	c.maintain()
	c.is(queue.Dead, id)
}

func invalidEdits(c *trial) {
	id := c.add(queue.Options{})
	many := make(map[string]string)
	for i := range 33 {
		many[strconv.Itoa(i)] = ""
	}
	if n := c.edit(queue.Edit{Labels: many}, id); n != 0 {
		c.Error("an edit to 33 labels is accepted")
	}
	for what, cmd := range map[string]queue.Command{
		"no edit":        {Do: queue.OrderEdit},
		"an empty edit":  {Do: queue.OrderEdit, Edit: new(queue.Edit{})},
		"another order":  {Do: queue.OrderPause, Edit: &queue.Edit{Key: new("k")}},
		"no tier":        {Do: queue.OrderEdit, Edit: &queue.Edit{Tier: new(stint.Highest + 1)}},
		"no key":         {Do: queue.OrderEdit, Edit: &queue.Edit{Key: new("\n")}},
		"a label":        {Do: queue.OrderEdit, Edit: &queue.Edit{Labels: map[string]string{"": "x"}}},
		"a label's text": {Do: queue.OrderEdit, Edit: &queue.Edit{Labels: map[string]string{"a": "\n"}}},
	} {
		_, err := c.Store.Command(c.Context(), c.now, cmd)
		c.refused(what, err, queue.ErrInvalid)
	}
}

// editsAfterAClockAhead shows that times that an edit set under a clock that was ahead are
// corrected, and that times that the edit did not set stay.
func editsAfterAClockAhead(c *trial, by time.Duration) {
	begun := c.now
	const kept = 24 * time.Hour
	options := queue.Options{RunAt: begun.Add(by + kept), Deadline: begun.Add(by + 2*kept)}
	ids := c.submit(options, options, options, options)
	at := func(d time.Duration) *time.Time { return new(c.now.Add(d)) }
	survived := c.withClockAhead(by, func() {
		c.edit(queue.Edit{Tier: new(stint.High)}, ids[0])
		c.edit(queue.Edit{RunAt: at(time.Hour)}, ids[1])
		c.edit(queue.Edit{Deadline: at(3 * kept)}, ids[2])
		c.edit(queue.Edit{RunAt: at(time.Hour), Deadline: at(2 * time.Hour)}, ids[3])
		c.edit(queue.Edit{Labels: map[string]string{"a": "b"}}, ids...)
	})
	if !survived {
		return
	}
	want := [][2]time.Duration{
		{by + kept, by + 2*kept}, {time.Hour, by + 2*kept}, {by + kept, 3 * kept}, {time.Hour, 2 * time.Hour},
	}
	for range 2 { // reopening a second time changes nothing
		c.maintain()
		for i, id := range ids {
			t := c.task(id)
			if got := [2]time.Duration{t.RunAt.Sub(begun), t.Deadline.Sub(begun)}; got != want[i] {
				c.Errorf("task %d has RunAt after %v and a deadline after %v, want %v", i, got[0], got[1], want[i])
			}
		}
		if !c.crash() {
			return
		}
	}
	c.pass(2 * time.Hour)
	c.maintain()
	c.is(queue.Waiting, ids[1])
	c.is(queue.Dead, ids[3])
}
