package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func explainCases() []testCase {
	return []testCase{
		{"C4_EveryWaitHasAReason", Config{}, everyWaitHasAReason},
		{"C4_ReasonScheduled", Config{}, reasonScheduled},
		{"C4_ReasonPaused", Config{}, reasonPaused},
		{"C4_ReasonDependency", Config{}, reasonDependency},
		{"C4_ReasonKey", Config{}, reasonKey},
		{"C4_ReasonRates", Config{}, reasonRates},
		{"C4_ReasonNoWorker", Config{}, reasonNoWorker},
		{"C4_ReasonMaxAndCap", Config{}, reasonMax},
		{"C4_HoldersAreOfTheSameQueue", Config{}, reasonsOfTwoQueues},
		{"C4_ReasonBehind", Config{}, reasonBehind},
		{"C4_NotBehindOtherKinds", Config{}, notBehindOtherKinds},
	}
}

func everyWaitHasAReason(c *trial) {
	for _, known := range []bool{false, true} {
		for _, state := range queue.States() {
			id := c.addInState(state)
			reasons := c.explain(id)
			if waits := state.Pending(); waits != (len(reasons) > 0) {
				c.Errorf("a task that is %s (worker known: %t) has the reasons %+v", state, known, reasons)
			}
			for _, r := range reasons {
				if r.Code == "" {
					c.Errorf("a reason of a task that is %s has no code: %+v", state, reasons)
				}
			}
		}
		c.register(worker, kind)
	}
	_, err := c.Store.Explain(c.Context(), c.now, c.ids.New(c.now))
	c.refused("Explain of an unknown task", err, queue.ErrNotFound)
}

func reasonScheduled(c *trial) {
	c.register(worker, kind)
	at := c.now.Add(time.Hour)
	if r := c.firstReason(c.add(queue.Options{RunAt: at}), queue.CodeScheduled); !r.Until.Equal(at) || r.Failures != 0 {
		c.Errorf("the reason is %+v", r)
	}
	id := c.add(queue.Options{})
	c.fails(c.claimOne(), queue.Outcome{RunAt: at})
	if r := c.firstReason(id, queue.CodeScheduled); !r.Until.Equal(at) || r.Failures != 1 {
		c.Errorf("the reason is %+v", r)
	}
}

func reasonPaused(c *trial) {
	c.register(worker, kind)
	id := c.add(queue.Options{})
	c.command(queue.OrderPause, id)
	paused := c.now
	c.pass(time.Second)
	low := stint.Low
	c.edit(queue.Edit{Tier: &low}, id) // by another operator
	if r := c.firstReason(id, queue.CodeTaskPaused); !strings.HasPrefix(r.By, operator) || !r.Since.Equal(paused) {
		c.Errorf("the reason is %+v", r)
	}
	c.command(queue.OrderResume, id)
	c.pause("", &queue.Pause{By: "bob"}) // all queues
	if r := c.firstReason(id, stint.Code(queue.HoldQueuePaused)); r.By != "bob" || !r.SetBy.Default {
		c.Errorf("the reason of a pause of all queues is %+v", r)
	}
	c.pause(queue.DefaultQueue, &queue.Pause{By: "alice"})
	r := c.firstReason(id, stint.Code(queue.HoldQueuePaused))
	if r.By != "alice" || r.SetBy.Default || !r.Since.Equal(c.now) {
		c.Errorf("the reason is %+v", r)
	}
}

func reasonDependency(c *trial) {
	c.register(worker, kind)
	batch := c.ids.New(c.now)
	first := c.add(queue.Options{Group: "g", Batch: batch})
	second := c.add(queue.Options{Group: "g", After: []queue.ID{first}})
	r := c.firstReason(second, stint.Code(queue.HoldDependency))
	if r.What != first.String() || r.State != queue.Waiting {
		c.Errorf("the reason is %+v", r)
	}
	c.anyReason(second, stint.Code(queue.HoldGroup))
	third := c.add(queue.Options{AfterBatch: batch})
	if r := c.firstReason(third, stint.Code(queue.HoldDependency)); r.What != batch.String() {
		c.Errorf("the reason is %+v", r)
	}
	if r := c.firstReason(c.add(queue.Options{Group: "g"}), stint.Code(queue.HoldGroup)); r.What != "g" {
		c.Errorf("the reason is %+v", r)
	}
}

func reasonKey(c *trial) {
	c.register(worker, kind)
	c.configure(queue.Settings{PerKey: 2})
	ids := c.several(3, queue.Options{Key: "k"})
	c.claim(5)
	r := c.firstReason(ids[2], stint.Code(queue.HoldKey))
	slices.SortFunc(r.Holders, compareIDs)
	if r.Key != "k" || r.Limit != 2 || r.Running != 2 || !slices.Equal(r.Holders, ids[:2]) {
		c.Errorf("the reason is %+v", r)
	}
}

func reasonRates(c *trial) {
	c.register(worker, kind)
	c.configure(queue.Settings{Rate: queue.Rate{PerSecond: 1}})
	ids := c.several(2, queue.Options{Key: "k"})
	c.claimOne()
	at := c.now.Add(time.Second)
	if r := c.firstReason(ids[1], stint.CodeRate); !r.Until.Equal(at) && !r.FreeAt.Equal(at) {
		c.Errorf("the reason is %+v, want it to end at %v", r, at)
	}
	c.pass(time.Hour)
	c.configure(queue.Settings{KeyRate: queue.Rate{PerSecond: 1}})
	c.claimOne()
	ids = append(ids, c.add(queue.Options{Key: "k"}))
	if r := c.firstReason(ids[2], stint.Code(queue.HoldKeyRate)); r.Key != "k" || !r.Until.Equal(c.now.Add(time.Second)) {
		c.Errorf("the reason is %+v", r)
	}
}

func reasonNoWorker(c *trial) {
	id := c.add(queue.Options{})
	c.firstReason(id, queue.CodeNoWorker)
	c.register("other", "another")
	c.firstReason(id, queue.CodeNoWorker)
	c.register(worker, kind)
	seen := c.now
	for _, r := range c.explain(id) {
		if r.Code == queue.CodeNoWorker {
			c.Errorf("although a worker knows the kind, a reason is %+v", r)
		}
	}
	c.pass(time.Hour)
	if r := c.firstReason(id, queue.CodeNoWorker); r.LastSeen.Worker != worker || !r.LastSeen.At.Equal(seen) {
		c.Errorf("the reason is %+v", r)
	}
}

func reasonMax(c *trial) {
	c.register(worker, kind)
	c.configure(queue.Settings{Max: 2, Caps: stint.Caps{Low: 1}})
	running := c.several(1, queue.Options{})
	low := c.add(queue.Options{Tier: stint.Low})
	c.claimOne()
	if r := c.firstReason(low, stint.CodeCap); r.Limit != 1 || r.Running != 1 {
		c.Errorf("the reason is %+v", r)
	}
	running = append(running, c.add(queue.Options{}))
	c.claimOne()
	r := c.firstReason(low, stint.CodeMax)
	slices.SortFunc(r.Holders, compareIDs)
	if r.Limit != 2 || r.Running != 2 || !slices.Equal(r.Holders, running) {
		c.Errorf("the reason is %+v", r)
	}
	normal := c.add(queue.Options{}) // whose tier has no cap of its own
	for _, r := range c.explain(normal) {
		if r.Code == stint.CodeCap {
			c.Errorf("the cap %d is a reason beside the limit %d", r.Limit, 2)
		}
	}
}

// reasonsOfTwoQueues shows that the holders of a reason are tasks of the task's own queue,
// also if another queue is at the same limit with tasks of the same key.
func reasonsOfTwoQueues(c *trial) {
	limits := map[stint.Code]queue.Settings{stint.CodeMax: {Max: 1}, stint.Code(queue.HoldKey): {PerKey: 1}}
	for code, limit := range limits {
		var run, wait []queue.ID
		for _, name := range []string{"one with " + string(code), "another with " + string(code)} {
			c.configureQueue(name, limit)
			run = append(run, c.add(queue.Options{Queue: name, Key: "k"}))
			wait = append(wait, c.add(queue.Options{Queue: name, Key: "k"}))
			c.claimWith(queue.Claim{Queue: name, Max: 9})
		}
		for i := range wait {
			if r := c.anyReason(wait[i], code); !slices.Equal(r.Holders, run[i:i+1]) {
				c.Errorf("the holders are %v, want %s", r.Holders, run[i])
			}
		}
	}
}

// notBehindOtherKinds: tasks of a kind that no worker handles do not go first.
func notBehindOtherKinds(c *trial) {
	c.register(worker, kind)
	other := queue.Spec{Kind: "other", Options: queue.Options{Tier: stint.High}}
	before := other
	before.Tier = stint.Normal
	ids := c.submitSpecs(other, before, queue.Spec{Kind: kind}, other)
	if r := c.firstReason(ids[2], stint.CodeBehind); r.Ahead != ([stint.Tiers]int{}) {
		c.Errorf("the reason of a task that is next is %+v", r)
	}
	c.register("another", "other")
	const high, normal = stint.High - stint.Lowest, stint.Normal - stint.Lowest
	if r := c.firstReason(ids[2], stint.CodeBehind); r.Ahead[high] != 2 || r.Ahead[normal] != 1 {
		c.Errorf("with a worker for the others the reason is %+v", r)
	}
}

func reasonBehind(c *trial) {
	c.register(worker, kind)
	ids := c.several(3, queue.Options{})
	c.several(2, queue.Options{Tier: stint.High})
	low := c.add(queue.Options{Tier: stint.Low})
	const high, normal = stint.High - stint.Lowest, stint.Normal - stint.Lowest
	if r := c.firstReason(ids[1], stint.CodeBehind); r.Ahead[high] != 2 || r.Ahead[normal] != 1 || r.Ahead[normal-1] != 0 {
		c.Errorf("the reason is %+v", r)
	}
	if r := c.firstReason(low, stint.CodeBehind); r.Ahead[high] != 2 || r.Ahead[normal] != 3 {
		c.Errorf("the reason is %+v", r)
	}
	if len(c.explain(c.task(ids[0]).ID)) == 0 {
		c.Error("the first of its tier has no reason")
	}
}
