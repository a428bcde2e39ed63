package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

func commandCases() []testCase {
	return []testCase{
		{"C4_CommandsInEveryState", Config{}, commandsInEveryState},
		{"C4_InvalidCommands", Config{}, invalidCommands},
		{"C4_CommandOfNoIDs", Config{}, commandOfNoIDs},
		{"C4_CommandOfAll", Config{}, commandOfAll},
		{"C4_CommandsKeepTheTrace", Config{}, commandsKeepTheTrace},
		{"C4_CommandLimit", Config{}, commandLimit},
		{"C4_CommandSelectsFirst", Config{}, commandSelectsFirst},
		{"C4_OrdersReachTheWorker", Config{}, ordersReachTheWorker},
		{"C4_OrdersAreObeyed", Config{}, ordersAreObeyed},
		{"C4_OrdersOfLostTasks", Config{}, ordersOfLostTasks},
		{"C4_ResumeWithdrawsAnOrder", Config{}, resumeWithdrawsAnOrder},
		{"C4_ResumeRestoresTheState", Config{}, resumeRestoresTheState},
		{"C3_RetryResetsCounters", Config{}, retryResetsCounters},
		{"C2_RetryOfScheduledIsNow", Config{}, retryOfScheduled},
		{"C3_DeadLettersByFilter", Config{}, deadLettersByFilter},
		{"C3_ForgetKeepsWhatItCancels", Config{}, forgetKeepsWhatItCancels},
		{"C4_EditInEveryState", Config{}, editInEveryState},
		{"C4_EditChangesTheOrder", Config{}, editChangesTheOrder},
		{"C8_EditOfTimes", Config{}, editOfTimes},
		{"C4_InvalidEdits", Config{}, invalidEdits},
	}
}

// commandsInEveryState compares each command in each state with the transition table.
func commandsInEveryState(c *trial) {
	for _, do := range []queue.Order{
		queue.OrderPause, queue.OrderResume, queue.OrderCancel, queue.OrderRetry, queue.OrderForget,
	} {
		for _, from := range queue.States() {
			id := c.addInState(from)
			c.pass(time.Second)
			want, changes := from, 0
			if i := slices.IndexFunc(queue.Transitions(), func(line queue.Transition) bool {
				return line.From == from && line.On == do.Trigger()
			}); i >= 0 {
				changes = 1
				if want = 0; do != queue.OrderForget {
					want = slices.Max(queue.Transitions()[i].To) // Waiting, if several are possible
				}
			}
			if from == queue.Running {
				want = queue.Running // until its worker obeys
			}
			if n := c.command(do, id); n != changes {
				c.Errorf("%s of a task that is %s changes %d tasks", do, from, n)
			}
			if want == 0 {
				c.gone(id)
				continue
			}
			c.is(want, id)
			if n := c.command(do, id); n != 0 {
				c.Errorf("a second %s of a task that was %s changes it again", do, from)
			}
		}
	}
}

func invalidCommands(c *trial) {
	id := c.add(queue.Options{})
	for do := queue.Order(0); do <= queue.OrderEdit+1; do++ {
		switch do {
		case queue.OrderPause, queue.OrderResume, queue.OrderCancel, queue.OrderRetry, queue.OrderForget, queue.OrderEdit:
			continue
		default:
		}
		_, err := c.Store.Command(c.Context(), c.now, queue.Command{Do: do, Filter: queue.Filter{IDs: []queue.ID{id}}})
		c.refused("command "+do.String(), err, queue.ErrInvalid)
	}
	for what, command := range map[string]queue.Command{
		"a long By":     {Do: queue.OrderCancel, By: strings.Repeat("a", 201)},
		"a long Reason": {Do: queue.OrderPause, Reason: strings.Repeat("a", 4097)},
	} {
		command.Filter.IDs = []queue.ID{id}
		_, err := c.Store.Command(c.Context(), c.now, command)
		c.refused("a command with "+what, err, queue.ErrInvalid)
	}
	if n := c.command(queue.OrderCancel, c.ids.New(c.now)); n != 0 {
		c.Errorf("cancelling an unknown task changes %d tasks", n)
	}
	c.is(queue.Waiting, id)
}

func commandsKeepTheTrace(c *trial) {
	id := c.add(queue.Options{})
	c.pass(time.Second)
	c.commandWith(queue.Command{Do: queue.OrderPause, All: true, By: "alice", Reason: "too loud"})
	t := c.task(id)
	want := queue.Step{At: c.now, On: queue.OnPause, To: queue.Paused, By: "alice", Detail: "too loud"}
	if got := t.Steps[len(t.Steps)-1]; !got.At.Equal(want.At) {
		c.Errorf("the step was at %v, want %v", got.At, want.At)
	} else if got.At = want.At; got != want {
		c.Errorf("the step is %+v, want %+v", got, want)
	}
}

func commandLimit(c *trial) {
	ids := c.several(6, queue.Options{})
	c.add(queue.Options{Queue: "other"})
	c.command(queue.OrderPause, ids[1])
	mine := queue.Filter{Queue: queue.DefaultQueue}
	// The oldest come first; tasks that are already paused do not count.
	if n := c.commandWith(queue.Command{Do: queue.OrderPause, Filter: mine, Limit: 3}); n != 3 {
		c.Errorf("a pause of at most 3 tasks pauses %d", n)
	}
	c.is(queue.Paused, ids[:4]...)
	c.is(queue.Waiting, ids[4:]...)
	if n := c.commandWith(queue.Command{Do: queue.OrderCancel, Filter: mine}); n != 6 {
		c.Errorf("a cancel without a limit cancels %d of 6", n)
	}
}

// commandSelectsFirst shows that a command does not change tasks that match its filter
// only as a consequence of the command.
func commandSelectsFirst(c *trial) {
	first := c.add(queue.Options{Group: "g"})
	second := c.add(queue.Options{Group: "g"})
	waiting := queue.Filter{States: []queue.State{queue.Waiting}}
	if n := c.commandWith(queue.Command{Do: queue.OrderCancel, Filter: waiting}); n != 1 {
		c.Errorf("cancelling waiting tasks cancels %d, want 1", n)
	}
	c.is(queue.Cancelled, first)
	c.is(queue.Waiting, second)
}

func ordersReachTheWorker(c *trial) {
	id := c.add(queue.Options{})
	t := c.claimOne()
	orders := func(want queue.Order, reason string) {
		c.Helper()
		if got := c.heartbeat(t, queue.Heartbeat{Lease: lease}); got.Stop != queue.StopReason(want) || got.Reason != reason {
			c.Errorf("a heartbeat returns %+v, want %s with the reason %q", got, want, reason)
		}
		if got := c.task(id); got.State != queue.Running || got.Order != want {
			c.Errorf("the task is %s with the order %s, want %s", got.State, got.Order, want)
		}
	}
	give := func(do queue.Order, reason string, want int) {
		c.Helper()
		f := queue.Filter{IDs: []queue.ID{id}}
		if n := c.commandWith(queue.Command{Do: do, Filter: f, Reason: reason}); n != want {
			c.Errorf("the order %s for a running task changes %d, want %d", do, n, want)
		}
	}
	orders(0, "")
	give(queue.OrderPause, "p1", 1)
	orders(queue.OrderPause, "p1")
	give(queue.OrderPause, "p2", 0)
	give(queue.OrderCancel, "c1", 1)
	orders(queue.OrderCancel, "c1")
	give(queue.OrderPause, "p3", 0)
	give(queue.OrderResume, "r", 0)
	give(queue.OrderRetry, "r", 0)
	give(queue.OrderForget, "f", 0)
	orders(queue.OrderCancel, "c1")
	c.succeeds(t) // a handler that finishes despite the order has succeeded
	c.is(queue.Succeeded, id)
}

// ordersAreObeyed checks the state and the steps of a task after each outcome under each
// order.
func ordersAreObeyed(c *trial) {
	obeyed := map[queue.Order]queue.State{queue.OrderPause: queue.Paused, queue.OrderCancel: queue.Cancelled}
	for order, to := range obeyed {
		later := c.now.Add(time.Hour)
		for _, test := range []struct {
			o     queue.Outcome
			want  queue.State
			steps []queue.Trigger // made by the outcome
		}{
			{queue.Outcome{Kind: queue.OutcomeSuccess}, queue.Succeeded, []queue.Trigger{queue.OnSuccess}},
			{queue.Outcome{Kind: queue.OutcomeRelease}, to, []queue.Trigger{order.Trigger()}},
			{queue.Outcome{Kind: queue.OutcomeSnooze, RunAt: later}, to, []queue.Trigger{queue.OnSnooze, order.Trigger()}},
			{queue.Outcome{Kind: queue.OutcomeFailure}, to, []queue.Trigger{queue.OnFailure, order.Trigger()}},
			{queue.Outcome{Kind: queue.OutcomeFailure, Permanent: true}, queue.Dead, []queue.Trigger{queue.OnFailure}},
		} {
			id := c.add(queue.Options{})
			t := c.claimOne()
			c.command(order, id)
			test.o.Error = "it was in the middle"
			for range 2 { // the repetition returns the same and changes nothing
				c.ok("settle", c.settle(t, test.o))
				c.is(test.want, id)
			}
			got := c.task(id)
			var steps []queue.Trigger
			for _, s := range got.Steps[2:] {
				steps = append(steps, s.On)
				if s.On == order.Trigger() && (s.By != operator || s.Detail != "a reason") {
					c.Errorf("the step of the order is %+v", s)
				}
			}
			if !slices.Equal(steps, test.steps) {
				c.Errorf("%s under the order %s makes the steps %v, want %v", test.o.Kind, order, steps, test.steps)
			}
			c.command(queue.OrderCancel, id)
		}
	}
}

func ordersOfLostTasks(c *trial) {
	paused, cancelled := c.add(queue.Options{}), c.add(queue.Options{})
	last := c.addSpec(queue.Spec{Payload: []byte("p"), Options: queue.Options{MaxCrashes: 1}})
	c.claim(3)
	c.command(queue.OrderPause, paused)
	c.command(queue.OrderCancel, cancelled, last)
	c.expireLeases()
	c.is(queue.Paused, paused)
	c.is(queue.Cancelled, cancelled)
	c.is(queue.Dead, last) // a crash makes it poison also under an order
	if t := c.task(paused); t.Crashes != 1 {
		c.Errorf("the paused task has %d crashes, want 1", t.Crashes)
	}
	c.started(5)
	c.command(queue.OrderResume, paused)
	c.started(5, paused)
}

func resumeWithdrawsAnOrder(c *trial) {
	id := c.add(queue.Options{})
	t := c.claimOne()
	c.command(queue.OrderPause, id)
	if n := c.command(queue.OrderResume, id); n != 1 {
		c.Errorf("withdrawing a pause changes %d tasks, want 1", n)
	}
	if got := c.heartbeat(t, queue.Heartbeat{Lease: lease}); got != (queue.Answer{}) {
		c.Errorf("a heartbeat returns %+v", got)
	}
	c.releases(t)
	c.is(queue.Waiting, id)
	// An order holds for one lease.
	t = c.claimOne()
	c.command(queue.OrderPause, id)
	c.releases(t)
	c.command(queue.OrderResume, id)
	if got := c.heartbeat(c.claimOne(), queue.Heartbeat{Lease: lease}); got != (queue.Answer{}) {
		c.Errorf("a heartbeat of the next lease returns %+v", got)
	}
}

func resumeRestoresTheState(c *trial) {
	first := c.add(queue.Options{})
	at := c.now.Add(time.Hour)
	later, held := c.add(queue.Options{RunAt: at}), c.add(queue.Options{After: []queue.ID{first}})
	c.command(queue.OrderPause, first, later, held)
	c.is(queue.Paused, first, later, held)
	c.started(3)
	c.command(queue.OrderResume, first, later, held)
	c.is(queue.Waiting, first)
	c.is(queue.Scheduled, later)
	c.is(queue.Held, held)
	c.command(queue.OrderPause, later)
	c.pass(2 * time.Hour)
	c.maintain()
	c.is(queue.Paused, later) // its RunAt does not resume it
	c.command(queue.OrderResume, later)
	c.is(queue.Waiting, later)
}

func retryResetsCounters(c *trial) {
	deadline := c.now.Add(time.Minute)
	options := queue.Options{Unique: "u", MaxAttempts: 1, Labels: map[string]string{"a": "b"}}
	id := c.addSpec(queue.Spec{Payload: []byte("p"), Options: options})
	late := c.addSpec(queue.Spec{Kind: "other", Options: queue.Options{Deadline: deadline}})
	delayed := c.addSpec(queue.Spec{Kind: "other", Options: queue.Options{RunAt: c.now.Add(5 * time.Hour)}})
	c.fails(c.claimOne(), queue.Outcome{Error: "no", Checkpoint: []byte("here")})
	c.command(queue.OrderCancel, delayed)
	c.pass(time.Hour)
	c.maintain()
	c.is(queue.Dead, id, late)
	if n := c.command(queue.OrderRetry, id, late, delayed); n != 3 {
		c.Errorf("retrying 3 tasks retries %d", n)
	}
	t := c.task(id)
	if t.State != queue.Waiting || t.Failures != 0 || string(t.Payload) != "p" || string(t.Checkpoint) != "here" {
		c.Errorf("the retried task is %+v", t)
	}
	c.maintain()
	c.is(queue.Waiting, late, delayed) // a retry removes a past deadline and a delay
	c.fails(c.claimOne(), queue.Outcome{})
	c.is(queue.Dead, id)
	c.command(queue.OrderRetry, id)
	c.succeeds(c.claimOne())
}

func retryOfScheduled(c *trial) {
	id := c.add(queue.Options{})
	c.fails(c.claimOne(), queue.Outcome{RunAt: c.now.Add(time.Hour)})
	c.command(queue.OrderRetry, id)
	t := c.claimOne()
	if t.ID != id || t.Failures != 1 {
		c.Errorf("the task is %+v", t)
	}
	c.releases(t)
	c.is(queue.Waiting, id)
	c.command(queue.OrderPause, id)
	c.command(queue.OrderResume, id)
	c.is(queue.Waiting, id) // its delay does not come back
}

func deadLettersByFilter(c *trial) {
	for range 3 {
		c.submit(queue.Options{Labels: map[string]string{"of": "me"}}, queue.Options{})
		for _, t := range c.claim(2) {
			c.fails(t, queue.Outcome{Permanent: true, Error: "disk full on " + t.Labels["of"]})
		}
	}
	dead := queue.Filter{States: []queue.State{queue.Dead}}
	if n := len(c.find(dead)); n != 6 {
		c.Errorf("there are %d dead letters, want 6", n)
	}
	mine := queue.Filter{States: []queue.State{queue.Dead}, Error: "full on me"}
	if n := c.commandWith(queue.Command{Do: queue.OrderRetry, Filter: mine, Limit: 2}); n != 2 {
		c.Errorf("retrying at most 2 tasks retries %d", n)
	}
	if n := c.commandWith(queue.Command{Do: queue.OrderForget, Filter: dead}); n != 4 {
		c.Errorf("purging the remaining 4 purges %d", n)
	}
	if n := len(c.find(queue.Filter{})); n != 2 {
		c.Errorf("there are %d tasks, want 2", n)
	}
}

// forgetKeepsWhatItCancels shows that forgetting all finished tasks does not forget the
// tasks that this cancels.
func forgetKeepsWhatItCancels(c *trial) {
	for _, byID := range []bool{false, true} {
		first := c.addInState(queue.Dead)
		waits := c.add(queue.Options{After: []queue.ID{first}})
		var f queue.Filter
		if byID {
			f.IDs = []queue.ID{waits, first}
		}
		if n := c.commandWith(queue.Command{Do: queue.OrderForget, Filter: f, All: !byID}); n != 1 {
			c.Errorf("with 1 finished task, %d are forgotten", n)
		}
		c.gone(first)
		c.is(queue.Cancelled, waits)
		c.command(queue.OrderForget, waits)
	}
}
