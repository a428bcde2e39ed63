package storetest

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
)

// trial is a case in progress: a store, and the time at which things happen to
// it. Its methods end the test if the store answers an error.
type trial struct {
	*testing.T
	Harness
	now    time.Time
	ids    queue.IDs
	closed bool // by the case itself
}

// The kind, worker, operator and lease of a case that is about none of them.
const (
	kind     = "work"
	worker   = "worker-1"
	operator = "operator-1"
	lease    = time.Minute
)

func newTrial(t *testing.T, h Harness) *trial {
	t.Helper()
	return &trial{T: t, Harness: h, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *trial) ok(what string, err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s: %v", what, err)
	}
}

// refused checks that a call was answered an error.
func (c *trial) refused(what string, err, want error) {
	c.Helper()
	if !errors.Is(err, want) {
		c.Errorf("%s: the answer is %v, want %v", what, err, want)
	}
}

// pass lets time go by.
func (c *trial) pass(d time.Duration) { c.now = c.now.Add(d) }

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
		c.Fatalf("Submit answers %d tasks with %d receipts", len(tasks), len(receipts))
	}
	return receipts
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

// claim claims tasks of the usual kind, or of others, in the usual way.
func (c *trial) claim(n int, kinds ...string) []queue.Task {
	c.Helper()
	if len(kinds) == 0 {
		kinds = []string{kind}
	}
	return c.claimed(queue.Claim{Queue: queue.DefaultQueue, Kinds: kinds, Max: n}).Tasks
}

// claimed claims tasks; what is not set of the claim is as usual.
func (c *trial) claimed(q queue.Claim) queue.Claimed {
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
		c.Fatalf("a claim of %d tasks got %d", q.Max, len(claimed.Tasks))
	}
	return claimed
}

// one claims the task that is next.
func (c *trial) one() queue.Task {
	c.Helper()
	tasks := c.claim(1)
	if len(tasks) != 1 {
		c.Fatal("no task can be claimed")
	}
	return tasks[0]
}

// started claims and checks which tasks that gives, in their order.
func (c *trial) started(n int, want ...queue.ID) []queue.Task {
	c.Helper()
	tasks := c.claim(n)
	if got := idsOf(tasks); !slices.Equal(got, want) {
		c.Fatalf("a claim of %d tasks gives\n%v, want\n%v", n, got, want)
	}
	return tasks
}

func idsOf(tasks []queue.Task) (ids []queue.ID) {
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

// settle says what became of one task, and returns the answer.
func (c *trial) settle(t queue.Task, o queue.Outcome) error {
	c.Helper()
	o.ID, o.Token = t.ID, t.Lease.Token
	answers, err := c.Store.Settle(c.Context(), c.now, []queue.Outcome{o})
	c.ok("Settle", err)
	if len(answers) != 1 {
		c.Fatalf("Settle answers one outcome with %d", len(answers))
	}
	return answers[0]
}

// succeeds and fails settle a task.
func (c *trial) succeeds(t queue.Task) {
	c.Helper()
	c.ok("settle a success", c.settle(t, queue.Outcome{Kind: queue.OutcomeSuccess}))
}

func (c *trial) fails(t queue.Task, o queue.Outcome) {
	c.Helper()
	o.Kind = queue.OutcomeFailure
	if o.Error == "" {
		o.Error = "it does not work"
	}
	c.ok("settle a failure", c.settle(t, o))
}

// dies has the task that is next fail for good.
func (c *trial) dies() {
	c.Helper()
	c.fails(c.one(), queue.Outcome{Permanent: true})
}

// heartbeat sends one heartbeat of a task.
func (c *trial) heartbeat(t queue.Task, b queue.Heartbeat) queue.Answer {
	c.Helper()
	b.ID, b.Token = t.ID, t.Lease.Token
	answers, err := c.Store.Heartbeat(c.Context(), c.now, queue.Worker{Name: t.Lease.Worker}, []queue.Heartbeat{b})
	c.ok("Heartbeat", err)
	if len(answers) != 1 {
		c.Fatalf("Heartbeat answers one heartbeat with %d answers", len(answers))
	}
	return answers[0]
}

// hear has the store hear of a worker that knows kinds of the default queue.
func (c *trial) hear(name string, kinds ...string) {
	c.Helper()
	w := queue.Worker{Name: name, Kinds: map[string][]string{queue.DefaultQueue: kinds}, Slots: 1, Since: c.now}
	_, err := c.Store.Heartbeat(c.Context(), c.now, w, nil)
	c.ok("Heartbeat", err)
}

// command does something to one task, and returns whether that changed it.
func (c *trial) command(do queue.Order, ids ...queue.ID) int {
	c.Helper()
	return c.commands(queue.Command{Do: do, Filter: queue.Filter{IDs: ids}, By: operator, Reason: "a reason"})
}

func (c *trial) commands(cmd queue.Command) int {
	c.Helper()
	n, err := c.Store.Command(c.Context(), c.now, cmd)
	c.ok("Command", err)
	return n
}

// configure and configures make s all that programs have set for a queue.
func (c *trial) configure(s queue.Settings) {
	c.Helper()
	c.configures(queue.DefaultQueue, s)
}

func (c *trial) configures(name string, s queue.Settings) {
	c.Helper()
	c.change(name, only(s))
}

// only is the change after which s is all that programs have set.
func only(s queue.Settings) queue.Change {
	set := func(f queue.Field) bool { return slices.Contains(s.Fields(), f) }
	return queue.Change{Set: s, Unset: slices.DeleteFunc(queue.Fields(), set)}
}

func (c *trial) change(name string, change queue.Change) {
	c.Helper()
	c.ok("Configure", c.Store.Configure(c.Context(), c.now, name, change))
}

// settings returns what is set under a name.
func (c *trial) settings(name string) queue.Configured {
	c.Helper()
	all, err := c.Store.Settings(c.Context())
	c.ok("Settings", err)
	return all[name]
}

// pause pauses a queue, or ends its pause.
func (c *trial) pause(name string, p *queue.Pause) {
	c.Helper()
	c.ok("PauseQueue", c.Store.PauseQueue(c.Context(), c.now, name, p))
}

// maintain does all that is due.
func (c *trial) maintain() (next time.Time) {
	c.Helper()
	next, err := c.Store.Maintain(c.Context(), c.now, 1000)
	c.ok("Maintain", err)
	return next
}

// lose has the leases of all running tasks run out. Those that have outlived a
// store begin anew with the first call.
func (c *trial) lose() {
	c.Helper()
	c.maintain()
	c.pass(2 * lease)
	c.maintain()
}

// find returns what a filter finds, oldest first.
func (c *trial) find(f queue.Filter) []queue.Task {
	c.Helper()
	tasks, err := everything(c.Context(), c.Store, f)
	c.ok("Find", err)
	return tasks
}

func (c *trial) task(id queue.ID) queue.Task {
	c.Helper()
	tasks := c.find(queue.Filter{IDs: []queue.ID{id}})
	if len(tasks) != 1 {
		c.Fatalf("%d tasks have the ID %s", len(tasks), id)
	}
	if err := checkTask(&tasks[0]); err != nil {
		c.Errorf("task %s: %v\n%s", id, err, life(tasks[0]))
	}
	return tasks[0]
}

// is checks the state of tasks.
func (c *trial) is(want queue.State, ids ...queue.ID) {
	c.Helper()
	for i, id := range ids {
		if t := c.task(id); t.State != want {
			c.Fatalf("task %d is %s, want %s\n%s", i, t.State, want, life(t))
		}
	}
}

// heldBy checks that a task is held, and by what first.
func (c *trial) heldBy(id queue.ID, want queue.HoldCode) {
	c.Helper()
	t := c.task(id)
	if t.State != queue.Held || len(t.Holds) == 0 || t.Holds[0].Code != want {
		c.Fatalf("the task is %s with the holds %v, want it held by %s\n%s", t.State, t.Holds, want, life(t))
	}
}

// gone checks that tasks have been forgotten.
func (c *trial) gone(ids ...queue.ID) {
	c.Helper()
	if tasks := c.find(queue.Filter{IDs: ids}); len(tasks) > 0 {
		c.Errorf("%d tasks of %d are remembered", len(tasks), len(ids))
	}
}

func (c *trial) check() {
	c.Helper()
	if c.closed {
		return
	}
	if err := Check(c.Context(), c.Store); err != nil {
		c.Errorf("the store breaks its contract:\n%v", err)
	}
}
