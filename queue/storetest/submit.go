package storetest

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func submitCases() []testCase {
	small := Config{MaxPayload: 100}
	return []testCase{
		{"C1_SubmittedTaskIsKept", Config{}, taskIsKept},
		{"C1_NothingSubmitted", Config{}, nothingSubmitted},
		{"C1_InvalidTasks", Config{}, invalidTasks},
		{"C1_PayloadLimit", small, payloadLimit},
		{"C10_SubmitHasALimit", Config{}, submitHasALimit},
		{"C6_SubmitIsAllOrNone", small, allOrNone},
		{"C6_TasksAreCopied", Config{}, tasksAreCopied},
		{"C7_UniqueAnswersTheFirst", Config{}, uniqueAnswersTheFirst},
		{"C7_UniqueUnderConcurrency", Config{}, uniqueUnderConcurrency},
		{"C7_RepeatedSubmit", Config{}, repeatedSubmit},
		{"C1_FullQueue", Config{}, fullQueue},
		{"C1_FullQueueIsAllOrNone", Config{}, fullQueueAllOrNone},
		{"C8_TimeDoesNotGoBack", Config{}, timeGoesBack},
	}
}

func taskIsKept(c *trial) {
	before := c.add(queue.Options{})
	spec := queue.Spec{
		Kind:    "send",
		Payload: []byte("\x00payload\xff"),
		Options: queue.Options{
			Queue:       "mail",
			Tier:        stint.High,
			Key:         "tenant",
			Unique:      "once",
			Group:       "group",
			After:       []queue.ID{before},
			AfterAny:    []queue.ID{before},
			UniqueFor:   time.Minute,
			Batch:       c.ids.New(c.now),
			AfterBatch:  c.ids.New(c.now),
			RunAt:       c.now.Add(time.Hour),
			Deadline:    c.now.Add(2 * time.Hour),
			Timeout:     time.Minute,
			MaxAttempts: 7,
			MaxCrashes:  2,
			Labels:      map[string]string{"a": "b"},
			Trace:       "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		},
	}
	t := c.task(c.addSpec(spec))
	if !t.RunAt.Equal(spec.RunAt) || !t.Deadline.Equal(spec.Deadline) {
		c.Errorf("its times are %v and %v, want %v and %v", t.RunAt, t.Deadline, spec.RunAt, spec.Deadline)
	}
	t.RunAt, t.Deadline = spec.RunAt, spec.Deadline // a store may return them in any time zone
	if !reflect.DeepEqual(t.Spec, spec) {
		c.Errorf("the task is\n%+v, want\n%+v", t.Spec, spec)
	}
	if t.State != queue.Scheduled || !t.Submitted.Equal(c.now) || !t.Changed.Equal(c.now) || len(t.Steps) != 1 {
		c.Errorf("the new task is %+v", t)
	}
	if got := c.task(before).Queue; got != queue.DefaultQueue {
		c.Errorf("a task without a queue is in queue %q", got)
	}
}

func nothingSubmitted(c *trial) {
	if receipts := c.submitTasks(); len(receipts) != 0 {
		c.Errorf("the receipts are %v", receipts)
	}
}

// invalidSpecs returns tasks that Submit must refuse, by what is invalid.
func invalidSpecs(c *trial) map[string]queue.NewTask {
	id, unknown, batch := c.ids.New(c.now), c.ids.New(c.now), c.ids.New(c.now)
	tasks := map[string]queue.NewTask{
		"no ID":   {Spec: queue.Spec{Kind: kind}},
		"no kind": {ID: id},
	}
	for what, o := range map[string]queue.Options{
		"tier above the highest":     {Tier: stint.Highest + 1},
		"tier below the lowest":      {Tier: stint.Lowest - 1},
		"negative attempts":          {MaxAttempts: -1},
		"negative crashes":           {MaxCrashes: -1},
		"negative timeout":           {Timeout: -1},
		"deadline not after the run": {RunAt: c.now, Deadline: c.now},
		"after an unknown task":      {After: []queue.ID{unknown}},
		"after itself":               {After: []queue.ID{id}},
		"after its own batch":        {Batch: batch, AfterBatch: batch},
	} {
		tasks[what] = queue.NewTask{ID: id, Spec: queue.Spec{Kind: kind, Options: o}}
	}
	return tasks
}

func invalidTasks(c *trial) {
	for what, t := range invalidSpecs(c) {
		c.submitRefused(what, queue.ErrInvalid, t)
	}
	first, second := c.fresh(queue.Options{}), c.fresh(queue.Options{})
	first.After = []queue.ID{second.ID}
	c.submitRefused("after a later task of the call", queue.ErrInvalid, first, second)
	if n := len(c.find(queue.Filter{})); n != 0 {
		c.Errorf("%d tasks were accepted", n)
	}
}

func payloadLimit(c *trial) {
	c.addSpec(queue.Spec{Payload: make([]byte, 100)})
	c.submitRefused("one byte too many", queue.ErrTooLarge, c.freshSpec(queue.Spec{Payload: make([]byte, 101)}))
}

func allOrNone(c *trial) {
	bad := slices.Collect(maps.Values(invalidSpecs(c)))
	bad = append(bad, c.freshSpec(queue.Spec{Payload: make([]byte, 101)}))
	for _, t := range bad {
		good := []queue.NewTask{c.fresh(queue.Options{Unique: "u"}), c.fresh(queue.Options{Group: "g"})}
		for _, call := range [][]queue.NewTask{{good[0], good[1], t}, {t, good[0], good[1]}, {good[0], t, good[1]}} {
			if _, err := c.Store.Submit(c.Context(), c.now, call); err == nil {
				c.Errorf("a call with the task %+v is accepted", t)
			}
		}
	}
	if n := len(c.find(queue.Filter{})); n != 0 {
		c.Errorf("%d tasks were accepted", n)
	}
	c.started(10)
	c.submit(queue.Options{Unique: "u"}, queue.Options{Group: "g"}) // the refused calls have taken no key and no group
	c.claim(2)
}

// tasksAreCopied shows that the store shares no memory with its callers: they may change
// the tasks that they submitted and the tasks that it returned.
func tasksAreCopied(c *trial) {
	before := c.add(queue.Options{})
	options := queue.Options{Labels: map[string]string{"k": "v"}, After: []queue.ID{before}}
	t := c.freshSpec(queue.Spec{Payload: []byte("abc"), Options: options})
	call := []queue.NewTask{t}
	c.submitTasks(call...)
	if call[0].Queue != "" {
		c.Errorf("Submit has set the queue of its argument to %q", call[0].Queue)
	}
	overwrite := func(s *queue.Spec) {
		s.Payload[0] = 'X'
		s.Labels["k"] = "X"
		s.After[0] = queue.ID{}
	}
	overwrite(&t.Spec)
	found := c.task(t.ID)
	overwrite(&found.Spec)
	found.Steps[0].On = 0
	c.succeeds(c.claimOne())
	claimed := c.claimOne()
	overwrite(&claimed.Spec)
	c.releases(claimed)
	if got := c.claimOne(); string(got.Payload) != "abc" || got.Labels["k"] != "v" || got.After[0] != before {
		c.Errorf("the task is now %+v", got.Spec)
	}
}

func uniqueAnswersTheFirst(c *trial) {
	spec := queue.Spec{Payload: []byte("first"), Options: queue.Options{Unique: "u"}}
	id := c.addSpec(spec)
	again := func(when string) {
		c.Helper()
		options := queue.Options{Unique: "u", After: []queue.ID{c.ids.New(c.now)}}
		second := c.freshSpec(queue.Spec{Payload: []byte("second"), Options: options})
		if got, want := c.submitTasks(second)[0], (queue.Receipt{ID: id, Existing: true}); got != want {
			c.Errorf("%s, the receipt is %+v, want %+v", when, got, want)
		}
		c.gone(second.ID)
	}
	again("while it waits")
	t := c.claimOne()
	again("while it runs")
	c.succeeds(t)
	again("when it has succeeded")
	c.command(queue.OrderForget, id)
	elsewhere := queue.Spec{Options: queue.Options{Queue: "other", Unique: "u"}}
	accepted := c.submitSpecs(spec, elsewhere, queue.Spec{}, queue.Spec{})
	if len(c.find(queue.Filter{})) != len(accepted) {
		c.Error("a unique key is not free after its task is forgotten, or not in another queue")
	}
	first, second := c.fresh(queue.Options{Unique: "v"}), c.fresh(queue.Options{Unique: "v"})
	after := c.fresh(queue.Options{After: []queue.ID{second.ID}})
	receipts := c.submitTasks(first, second, after)
	if receipts[0].Existing || receipts[1] != (queue.Receipt{ID: first.ID, Existing: true}) {
		c.Errorf("the receipts of two tasks of a call with the same unique key are %+v", receipts)
	}
	if got := c.task(after.ID).After; !slices.Equal(got, []queue.ID{first.ID}) {
		c.Errorf("a task comes after %v, want the existing task that stands for %s", got, second.ID)
	}
}

func uniqueUnderConcurrency(c *trial) {
	const callers, keys = 16, 20
	var mu sync.Mutex
	owners := make(map[string]map[queue.ID]int) // by key: how often each ID was returned as new
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range keys {
				key := string(rune('a' + i))
				receipts, err := c.Store.Submit(c.Context(), c.now, []queue.NewTask{c.fresh(queue.Options{Unique: key})})
				if err != nil {
					c.Errorf("Submit: %v", err)
					return
				}
				mu.Lock()
				if owners[key] == nil {
					owners[key] = make(map[queue.ID]int)
				}
				if owners[key][receipts[0].ID] += 0; !receipts[0].Existing {
					owners[key][receipts[0].ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for key, ids := range owners {
		for id, accepted := range ids {
			if len(ids) != 1 || accepted != 1 {
				c.Errorf("key %s has %d tasks, and task %s was accepted %d times", key, len(ids), id, accepted)
			}
		}
	}
	if n := len(c.find(queue.Filter{})); n != keys {
		c.Errorf("there are %d tasks, want %d", n, keys)
	}
}

func repeatedSubmit(c *trial) {
	unique := queue.Options{Unique: "u"}
	first, same, other := c.fresh(unique), c.fresh(unique), c.fresh(queue.Options{})
	call := []queue.NewTask{first, other, same, other}
	c.configure(queue.Settings{Pending: 2})
	want := []queue.Receipt{{ID: first.ID}, {ID: other.ID}, {ID: first.ID, Existing: true}, {ID: other.ID}}
	answers := func(when string) {
		c.Helper()
		if got := c.submitTasks(call...); !slices.Equal(got, want) {
			c.Errorf("%s, the receipts are %+v, want %+v", when, got, want)
		}
	}
	answers("at first")
	answers("repeated")
	c.succeeds(c.claimOne())
	answers("after one has succeeded")
	if n := len(c.find(queue.Filter{})); n != 2 {
		c.Errorf("there are %d tasks, want 2", n)
	}
}

func fullQueue(c *trial) {
	c.configure(queue.Settings{Pending: 2})
	ids := c.submit(queue.Options{}, queue.Options{RunAt: c.now.Add(time.Hour)})
	full := func(when string) {
		c.Helper()
		c.submitRefused(when, queue.ErrFull, c.fresh(queue.Options{}))
	}
	full("with a waiting and a scheduled task")
	c.add(queue.Options{Queue: "other"})
	t := c.claimOne()
	full("with a running and a scheduled task")
	c.fails(t, queue.Outcome{Permanent: true})
	third := c.add(queue.Options{})
	full("with a new waiting task")
	// A full queue accepts commands.
	retried, paused := c.command(queue.OrderRetry, ids[0]), c.command(queue.OrderPause, third)
	cancelled := c.command(queue.OrderCancel, third)
	if retried+paused+cancelled != 3 {
		c.Errorf("in a full queue a retry, a pause and a cancel change %d, %d and %d tasks, want 1 each",
			retried, paused, cancelled)
	}
	full("with a retried and a scheduled task")
}

func fullQueueAllOrNone(c *trial) {
	c.configure(queue.Settings{Pending: 3})
	first := c.add(queue.Options{Unique: "u"})
	three := []queue.NewTask{c.fresh(queue.Options{}), c.fresh(queue.Options{}), c.fresh(queue.Options{})}
	c.submitRefused("three tasks with room for two", queue.ErrFull, three...)
	if n := len(c.find(queue.Filter{})); n != 1 {
		c.Errorf("there are %d tasks, want 1", n)
	}
	same := c.fresh(queue.Options{Unique: "u"})
	if got := c.submitTasks(three[0], same, three[1])[1]; got.ID != first {
		c.Errorf("the receipt of an existing task is %+v", got)
	}
}

// timeGoesBack shows that a store uses the latest time it has seen if a call has an
// earlier one.
func timeGoesBack(c *trial) {
	c.add(queue.Options{})
	latest := c.now
	c.pass(-time.Hour)
	t := c.claimOne()
	if !t.Changed.Equal(latest) || !t.Lease.Until.Equal(latest.Add(lease)) {
		c.Errorf("it was claimed at %v until %v; the latest time was %v", t.Changed, t.Lease.Until, latest)
	}
	c.succeeds(t)
	if t := c.task(c.add(queue.Options{RunAt: latest})); t.State != queue.Waiting || !t.Submitted.Equal(latest) {
		c.Errorf("it is %s since %v", t.State, t.Submitted)
	}
}

func submitHasALimit(c *trial) {
	tasks := make([]queue.NewTask, queue.MaxSubmit+1)
	for i := range tasks {
		tasks[i] = c.fresh(queue.Options{})
	}
	c.submitRefused("Submit of too many tasks", queue.ErrTooLarge, tasks...)
	c.gone(tasks[0].ID, tasks[queue.MaxSubmit].ID)
}
