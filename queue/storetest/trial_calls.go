package storetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// fresh returns a new task of the default kind with these options.
func (c *trial) fresh(o queue.Options) queue.NewTask { return c.freshSpec(queue.Spec{Options: o}) }

// freshSpec is fresh for a task that has a payload or a kind of its own.
func (c *trial) freshSpec(s queue.Spec) queue.NewTask {
	s.Kind = cmp.Or(s.Kind, kind)
	return queue.NewTask{ID: c.ids.New(c.now), Spec: s}
}

// submit submits tasks in one call; the store must accept each as new.
func (c *trial) submit(options ...queue.Options) []queue.ID {
	c.Helper()
	specs := make([]queue.Spec, len(options))
	for i, o := range options {
		specs[i].Options = o
	}
	return c.submitSpecs(specs...)
}

// submitSpecs is submit for tasks that have payloads or kinds of their own.
func (c *trial) submitSpecs(specs ...queue.Spec) (ids []queue.ID) {
	c.Helper()
	tasks := make([]queue.NewTask, len(specs))
	for i, s := range specs {
		tasks[i] = c.freshSpec(s)
	}
	for i, r := range c.submitTasks(tasks...) {
		if r.ID != tasks[i].ID || r.Existing {
			c.Fatalf("the receipt of task %s is %+v", tasks[i].ID, r)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

// submitTasks submits tasks in one call and returns a receipt for each.
func (c *trial) submitTasks(tasks ...queue.NewTask) []queue.Receipt {
	c.Helper()
	receipts, err := c.Store.Submit(c.Context(), c.now, tasks)
	c.ok("Submit", err)
	if len(receipts) != len(tasks) {
		c.Fatalf("Submit returns %d receipts for %d tasks", len(receipts), len(tasks))
	}
	return receipts
}

// submitRefused submits tasks in one call, which must return the error want.
func (c *trial) submitRefused(what string, want error, tasks ...queue.NewTask) {
	c.Helper()
	_, err := c.Store.Submit(c.Context(), c.now, tasks)
	c.refused(what, err, want)
}

// add submits one task.
func (c *trial) add(o queue.Options) queue.ID {
	c.Helper()
	return c.submit(o)[0]
}

// addSpec is add for a task that has a payload or a kind of its own.
func (c *trial) addSpec(s queue.Spec) queue.ID {
	c.Helper()
	return c.submitSpecs(s)[0]
}

// several submits n tasks one by one, each a millisecond after the one before.
func (c *trial) several(n int, o queue.Options) []queue.ID {
	c.Helper()
	return c.severalSpecs(n, queue.Spec{Options: o})
}

// severalSpecs is several for tasks that have a payload or a kind of their own.
func (c *trial) severalSpecs(n int, s queue.Spec) (ids []queue.ID) {
	c.Helper()
	for range n {
		ids = append(ids, c.addSpec(s))
		c.pass(time.Millisecond)
	}
	return ids
}

// addInState makes a task in the given state.
func (c *trial) addInState(state queue.State) queue.ID {
	c.Helper()
	only := queue.Spec{Kind: c.ids.New(c.now).String()} // no other task has this kind
	end := func(kind queue.OutcomeKind) queue.ID {
		c.Helper()
		id := c.addSpec(only)
		t := c.claim(1, only.Kind)[0]
		c.ok("Settle", c.settle(t, queue.Outcome{Kind: kind, Permanent: true}))
		return id
	}
	var id queue.ID
	switch state {
	case queue.Scheduled:
		id = c.add(queue.Options{RunAt: c.now.Add(time.Hour)})
	case queue.Held:
		id = c.add(queue.Options{After: []queue.ID{c.add(queue.Options{})}})
	case queue.Running:
		id = c.addSpec(only)
		c.claim(1, only.Kind)
	case queue.Paused:
		id = c.add(queue.Options{})
		c.command(queue.OrderPause, id)
	case queue.Succeeded:
		id = end(queue.OutcomeSuccess)
	case queue.Dead:
		id = end(queue.OutcomeFailure)
	case queue.Cancelled:
		id = c.add(queue.Options{})
		c.command(queue.OrderCancel, id)
	default:
		id = c.add(queue.Options{})
	}
	c.is(state, id)
	return id
}

// addPoison makes a task that is dead because its worker crashed.
func (c *trial) addPoison(s queue.Spec) queue.ID {
	c.Helper()
	s.MaxCrashes = 1
	id := c.addSpec(s)
	c.claimOne()
	c.expireLeases()
	c.is(queue.Dead, id)
	return id
}

// claim claims up to n tasks of the default queue, of these kinds or of the default one.
func (c *trial) claim(n int, kinds ...string) []queue.Task {
	c.Helper()
	if len(kinds) == 0 {
		kinds = []string{kind}
	}
	return c.claimWith(queue.Claim{Queue: queue.DefaultQueue, Kinds: kinds, Max: n}).Tasks
}

// claimFrom claims up to n tasks of the named queue.
func (c *trial) claimFrom(name string, n int) []queue.Task {
	c.Helper()
	return c.claimWith(queue.Claim{Queue: name, Max: n}).Tasks
}

// claimWith claims tasks. Worker, Kinds and Lease of q have defaults.
func (c *trial) claimWith(q queue.Claim) queue.Claimed {
	c.Helper()
	if q.Worker == "" {
		q.Worker = worker
	}
	if q.Kinds == nil {
		q.Kinds = []string{kind}
	}
	if q.Lease == 0 {
		q.Lease = lease
	}
	claimed, err := c.Store.Claim(c.Context(), c.now, q)
	c.ok("Claim", err)
	if len(claimed.Tasks) > q.Max {
		c.Fatalf("a claim of up to %d tasks returns %d", q.Max, len(claimed.Tasks))
	}
	return claimed
}

// claimOne claims the next task.
func (c *trial) claimOne() queue.Task {
	c.Helper()
	tasks := c.claim(1)
	if len(tasks) != 1 {
		c.Fatal("no task can be claimed")
	}
	return tasks[0]
}

// claimRemote claims the next task for a worker in another process.
func (c *trial) claimRemote() queue.Task {
	c.Helper()
	tasks := c.claimWith(queue.Claim{Queue: queue.DefaultQueue, Max: 1, Remote: true}).Tasks
	if len(tasks) != 1 {
		c.Fatal("no task can be claimed")
	}
	return tasks[0]
}

// started claims up to n tasks, which must be want, in this order.
func (c *trial) started(n int, want ...queue.ID) []queue.Task {
	c.Helper()
	tasks := c.claim(n)
	if got := idsOf(tasks); !slices.Equal(got, want) {
		c.Fatalf("a claim of up to %d tasks returns\n%v, want\n%v", n, got, want)
	}
	return tasks
}

func idsOf(tasks []queue.Task) (ids []queue.ID) {
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

// settle settles t with the outcome o and returns the error for that outcome.
func (c *trial) settle(t queue.Task, o queue.Outcome) error {
	c.Helper()
	o.ID, o.Token = t.ID, t.Lease.Token
	answers, err := c.Store.Settle(c.Context(), c.now, []queue.Outcome{o})
	c.ok("Settle", err)
	if len(answers) != 1 {
		c.Fatalf("Settle returns %d answers for one outcome", len(answers))
	}
	return answers[0]
}

// succeeds settles t as a success.
func (c *trial) succeeds(t queue.Task) {
	c.Helper()
	c.ok("settle a success", c.settle(t, queue.Outcome{Kind: queue.OutcomeSuccess}))
}

// fails settles t as a failure. The error of o has a default.
func (c *trial) fails(t queue.Task, o queue.Outcome) {
	c.Helper()
	o.Kind = queue.OutcomeFailure
	if o.Error == "" {
		o.Error = "it does not work"
	}
	c.ok("settle a failure", c.settle(t, o))
}

// releases releases t: the task returns to its queue.
func (c *trial) releases(t queue.Task) {
	c.Helper()
	c.ok("release", c.settle(t, queue.Outcome{Kind: queue.OutcomeRelease}))
}

// dies claims the next task and settles it as a permanent failure.
func (c *trial) dies() {
	c.Helper()
	c.fails(c.claimOne(), queue.Outcome{Permanent: true})
}

// heartbeat sends one heartbeat for t and returns the answer.
func (c *trial) heartbeat(t queue.Task, b queue.Heartbeat) queue.Answer {
	c.Helper()
	b.ID, b.Token = t.ID, t.Lease.Token
	answers, err := c.Store.Heartbeat(c.Context(), c.now, queue.Worker{Name: t.Lease.Worker}, []queue.Heartbeat{b})
	c.ok("Heartbeat", err)
	if len(answers) != 1 {
		c.Fatalf("Heartbeat returns %d answers for one heartbeat", len(answers))
	}
	return answers[0]
}

// register sends a heartbeat of a worker that knows these kinds of the default queue.
func (c *trial) register(name string, kinds ...string) {
	c.Helper()
	w := queue.Worker{Name: name, Kinds: map[string][]string{queue.DefaultQueue: kinds}, Slots: 1, Since: c.now}
	_, err := c.Store.Heartbeat(c.Context(), c.now, w, nil)
	c.ok("Heartbeat", err)
}

// command gives an order for the tasks with these IDs and returns how many it changed.
func (c *trial) command(do queue.Order, ids ...queue.ID) int {
	c.Helper()
	return c.commandWith(queue.Command{Do: do, Filter: queue.Filter{IDs: ids}, By: operator, Reason: "a reason"})
}

func (c *trial) commandWith(cmd queue.Command) int {
	c.Helper()
	n, err := c.Store.Command(c.Context(), c.now, cmd)
	c.ok("Command", err)
	return n
}

// configure makes s the settings of programs for the default queue.
func (c *trial) configure(s queue.Settings) {
	c.Helper()
	c.configureQueue(queue.DefaultQueue, s)
}

// configureQueue makes s the settings of programs for a queue; the name "" stands for
// the defaults and totals of all queues.
func (c *trial) configureQueue(name string, s queue.Settings) {
	c.Helper()
	c.change(name, only(s))
}

// only is the change that sets s and unsets all other fields.
func only(s queue.Settings) queue.Change {
	set := func(f queue.Field) bool { return slices.Contains(s.Fields(), f) }
	return queue.Change{Set: s, Unset: slices.DeleteFunc(queue.Fields(), set)}
}

func (c *trial) change(name string, change queue.Change) {
	c.Helper()
	c.ok("Configure", c.Store.Configure(c.Context(), c.now, name, change))
}

// configureAsOperator changes the default queue in the name of the operator ann.
func (c *trial) configureAsOperator(change queue.Change) {
	c.Helper()
	change.Operator, change.By = true, "ann"
	c.change(queue.DefaultQueue, change)
}

// pause pauses a queue; a nil pause resumes it.
func (c *trial) pause(name string, p *queue.Pause) {
	c.Helper()
	c.ok("PauseQueue", c.Store.PauseQueue(c.Context(), c.now, name, p))
}

// maintain does everything that is due and returns when Maintain wants to be called next.
func (c *trial) maintain() (next time.Time) {
	c.Helper()
	next, err := c.Store.Maintain(c.Context(), c.now, 1000)
	c.ok("Maintain", err)
	return next
}

// find returns all tasks that match a filter, oldest first.
func (c *trial) find(f queue.Filter) []queue.Task {
	c.Helper()
	tasks, err := everything(c.Context(), c.Store, f)
	c.ok("Find", err)
	return tasks
}

// stats returns the store's counts.
func (c *trial) stats() queue.Stats {
	c.Helper()
	stats, err := c.Store.Stats(c.Context(), c.now)
	c.ok("Stats", err)
	return stats
}

// settings returns the settings of a queue.
func (c *trial) settings(name string) queue.Configured {
	c.Helper()
	return c.allSettings()[name]
}

// allSettings returns the settings by queue.
func (c *trial) allSettings() map[string]queue.Configured {
	c.Helper()
	all, err := c.Store.Settings(c.Context())
	c.ok("Settings", err)
	return all
}

// explain returns the reasons why a task does not run.
func (c *trial) explain(id queue.ID) []queue.Reason {
	c.Helper()
	reasons, err := c.Store.Explain(c.Context(), c.now, id)
	c.ok("Explain", err)
	return reasons
}
