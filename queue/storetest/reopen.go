package storetest

import (
	"reflect"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func reopenCases() []testCase {
	return []testCase{
		{"C6_TasksSurvive", Config{}, tasksSurvive},
		{"C6_OrderSurvives", Config{}, orderSurvives},
		{"C6_OutcomesSurvive", Config{}, outcomesSurvive},
		{"C6_LeasesAfterACrash", Config{}, leasesAfterACrash},
		{"C7_UniqueSurvives", Config{}, uniqueSurvives},
		{"C8_TimesSurvive", Config{}, timesSurvive},
		{"C9_PoisonSurvives", Config{}, poisonSurvives},
		{"C12_WaitsSurvive", Config{}, waitsSurvive},
		{"C4_OrdersSurvive", Config{}, ordersSurvive},
		{"C4_SettingsSurvive", Config{}, settingsSurvive},
	}
}

func tasksSurvive(c *trial) {
	c.addSpec(queue.Spec{
		Payload: []byte("\x00\xff"),
		Options: queue.Options{
			Queue:       "mail",
			Tier:        stint.High,
			Key:         "k",
			Unique:      "u",
			Group:       "g",
			Batch:       c.ids.New(c.now),
			AfterBatch:  c.ids.New(c.now),
			RunAt:       c.now.Add(time.Hour),
			Deadline:    c.now.Add(2 * time.Hour),
			Timeout:     time.Minute,
			MaxAttempts: 7,
			MaxCrashes:  2,
			Labels:      map[string]string{"a": "b", "c": ""},
			Trace:       "trace",
		},
	})
	for _, state := range queue.States() {
		c.addInState(state)
	}
	c.addSpec(queue.Spec{Kind: "tried"})
	t := c.claim(1, "tried")[0]
	c.fails(t, queue.Outcome{Error: "first", Checkpoint: []byte("here"), RunAt: c.now.Add(time.Second)})
	before := c.find(queue.Filter{})
	if !c.crash() {
		return
	}
	after := c.find(queue.Filter{})
	if len(after) != len(before) {
		c.Fatalf("of %d tasks, %d have survived", len(before), len(after))
	}
	for i, t := range after {
		was := before[i]
		if was.State == queue.Running { // the crash may have ended its lease
			was.State, was.Steps, was.Lease, was.Changed, was.Crashes = t.State, t.Steps, t.Lease, t.Changed, t.Crashes
		}
		if !reflect.DeepEqual(plain(t), plain(was)) {
			c.Errorf("the task was\n%+v, and has become\n%+v", was, t)
		}
	}
}

// plain returns t in a form in which equal tasks compare equal: times in UTC, empty slices
// nil.
func plain(t queue.Task) queue.Task {
	for _, b := range []*[]byte{&t.Payload, &t.Checkpoint, &t.Result} {
		*b = append([]byte(nil), *b...)
	}
	t.After, t.Holds = append([]queue.ID(nil), t.After...), append([]queue.Hold(nil), t.Holds...)
	for _, at := range []*time.Time{&t.RunAt, &t.Deadline, &t.Submitted, &t.Changed, &t.Lease.Until} {
		*at = at.UTC()
	}
	t.Steps = slices.Clone(t.Steps)
	for i := range t.Steps {
		t.Steps[i].At = t.Steps[i].At.UTC()
	}
	return t
}

func orderSurvives(c *trial) {
	low := c.several(3, queue.Options{})
	c.fails(c.claimOne(), queue.Outcome{RunAt: c.now.Add(time.Second)}) // the oldest of them
	high := c.several(3, queue.Options{Tier: stint.High, Key: "k"})
	if !c.crash() {
		return
	}
	c.pass(time.Second)
	c.maintain()
	last := c.several(1, queue.Options{})
	c.started(9, slices.Concat(high, low, last)[:7]...)
}

func outcomesSurvive(c *trial) {
	ids := c.several(3, queue.Options{})
	tasks := c.claim(3)
	result := queue.Outcome{Kind: queue.OutcomeSuccess, Result: []byte("result")}
	c.ok("settle", c.settle(tasks[0], result))
	c.fails(tasks[1], queue.Outcome{Permanent: true, Error: "no"})
	c.releases(tasks[2])
	if !c.crash() {
		return
	}
	c.is(queue.Succeeded, ids[0])
	c.is(queue.Dead, ids[1])
	if t := c.task(ids[0]); string(t.Result) != "result" {
		c.Errorf("the result is %q", t.Result)
	}
	c.ok("repeat a success", c.settle(tasks[0], result))
	c.refused("another outcome", c.settle(tasks[0], queue.Outcome{Kind: queue.OutcomeFailure}), queue.ErrStale)
	c.started(9, ids[2])
}

// leasesAfterACrash shows that a task that ran starts again at the latest when its lease
// has expired, with a larger token, whether or not the store remembers the claim.
func leasesAfterACrash(c *trial) {
	id := c.add(queue.Options{MaxCrashes: 100})
	var last queue.Task
	for range 5 {
		t := c.claimOne()
		if t.ID != id || t.Lease.Token <= last.Lease.Token {
			c.Fatalf("after a crash, token %d comes after %d", t.Lease.Token, last.Lease.Token)
		}
		if last.Lease.Token != 0 {
			c.refused("an old token", c.settle(last, queue.Outcome{Kind: queue.OutcomeSuccess}), queue.ErrStale)
		}
		last = t
		if !c.crash() {
			return
		}
		c.expireLeases()
	}
	c.succeeds(c.claimOne())
}

func uniqueSurvives(c *trial) {
	specs := []queue.Options{{Unique: "waits"}, {Unique: "has ended"}, {Unique: "is forgotten"}}
	calls := []queue.NewTask{c.fresh(specs[0]), c.fresh(specs[1]), c.fresh(specs[2])}
	c.submitTasks(calls...)
	c.command(queue.OrderCancel, calls[1].ID, calls[2].ID)
	c.command(queue.OrderForget, calls[2].ID)
	if !c.crash() {
		return
	}
	if again := c.submitTasks(calls[:2]...); again[0] != (queue.Receipt{ID: calls[0].ID}) || again[1].Existing {
		c.Errorf("the receipts of a repeated call are %+v", again)
	}
	again := c.submitTasks(c.fresh(specs[0]), c.fresh(specs[1]), c.fresh(specs[2]))
	if again[0].ID != calls[0].ID || again[1].ID != calls[1].ID || again[2].Existing {
		c.Errorf("the receipts of tasks with the same unique keys are %+v", again)
	}
}

func timesSurvive(c *trial) {
	c.configure(queue.Settings{Keep: queue.Retention{Age: time.Hour}})
	later := c.add(queue.Options{RunAt: c.now.Add(time.Minute)})
	late := c.add(queue.Options{Deadline: c.now.Add(time.Minute)})
	paused := c.add(queue.Options{RunAt: c.now.Add(time.Minute)})
	finished := c.addInState(queue.Succeeded)
	c.command(queue.OrderPause, paused)
	if !c.crash() {
		return
	}
	if next := c.maintain(); next.IsZero() || next.After(c.now.Add(time.Minute)) {
		c.Errorf("Maintain returns %v; the time is %v", next, c.now)
	}
	c.is(queue.Scheduled, later)
	c.pass(time.Minute)
	c.maintain()
	c.is(queue.Waiting, later)
	c.is(queue.Dead, late)
	c.is(queue.Paused, paused)
	c.pass(time.Hour - time.Minute)
	c.maintain()
	c.gone(finished)
}

func poisonSurvives(c *trial) {
	spec := queue.Spec{Payload: []byte("poison")}
	first := c.addPoison(spec)
	if !c.crash() {
		return
	}
	c.is(queue.Dead, c.addSpec(spec))
	c.command(queue.OrderForget, first)
	if c.crash() {
		c.is(queue.Waiting, c.addSpec(spec))
	}
}

func waitsSurvive(c *trial) {
	batch := c.ids.New(c.now)
	first, second := c.add(queue.Options{}), c.add(queue.Options{Batch: batch})
	both := c.add(queue.Options{After: []queue.ID{first, second}})
	group := c.several(2, queue.Options{Group: "g"})
	c.command(queue.OrderPause, group...)
	last := c.add(queue.Options{AfterBatch: batch})
	c.succeeds(c.claimOne())
	c.command(queue.OrderForget, first)
	dead := c.addInState(queue.Dead)
	waits := c.add(queue.Options{After: []queue.ID{dead}})
	if !c.crash() {
		return
	}
	c.heldBy(both, queue.HoldDependency)
	c.heldBy(last, queue.HoldDependency)
	c.heldBy(waits, queue.HoldDependency)
	c.command(queue.OrderResume, group...)
	c.heldBy(group[1], queue.HoldGroup)
	c.started(9, second, group[0])
	c.succeeds(c.task(second))
	c.is(queue.Waiting, both, last)
	c.command(queue.OrderForget, dead)
	c.is(queue.Cancelled, waits)
}

func ordersSurvive(c *trial) {
	ids := c.submit(queue.Options{}, queue.Options{}, queue.Options{})
	c.claim(2)
	c.command(queue.OrderPause, ids[0])
	c.command(queue.OrderCancel, ids[1])
	c.command(queue.OrderPause, ids[2])
	if !c.crash() {
		return
	}
	c.expireLeases()
	c.is(queue.Paused, ids[0], ids[2])
	c.is(queue.Cancelled, ids[1])
}

func settingsSurvive(c *trial) {
	want := queue.Settings{Max: 1, PerKey: 1, Rate: queue.Rate{PerSecond: 100, Burst: 100}, Pending: 3}
	c.configure(want)
	c.pause("mail", &queue.Pause{By: operator})
	held := c.add(queue.Options{Queue: "mail"})
	c.several(3, queue.Options{})
	if !c.crash() {
		return
	}
	all := c.allSettings()
	pause := all["mail"].Paused
	if all[queue.DefaultQueue].InForce.Settings != want || pause == nil || pause.By != operator {
		c.Errorf("the settings are %+v", all)
	}
	c.heldBy(held, queue.HoldQueuePaused)
	if n := len(c.claim(9)); n != 1 {
		c.Errorf("with a limit of 1 a claim returns %d tasks", n)
	}
	c.submitRefused("a fourth task", queue.ErrFull, c.fresh(queue.Options{}))
}
