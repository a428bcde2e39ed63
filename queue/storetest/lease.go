package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

func leaseCases() []testCase {
	return []testCase{
		{"C8_HeartbeatExtendsALease", Config{}, heartbeatExtends},
		{"C8_ProgressAndCheckpoint", Config{}, progressAndCheckpoint},
		{"C6_LostLease", Config{}, lostLease},
		{"C6_LateLeaseIsGood", Config{}, lateLeaseIsGood},
		{"C6_TokensGrow", Config{}, tokensGrow},
		{"C9_CrashesInARow", Config{}, crashesInARow},
		{"C9_AFailureIsNoCrash", Config{}, failureIsNoCrash},
		{"C9_PoisonIsRecognised", Config{}, poisonIsRecognised},
		{"C9_PoisonIsForgotten", Config{}, poisonIsForgotten},
		{"C8_HeartbeatNeedsAName", Config{}, heartbeatNeedsAName},
	}
}

func heartbeatExtends(c *trial) {
	id := c.add(queue.Options{})
	t := c.claimOne()
	for range 10 {
		c.pass(lease - 1)
		if got := c.heartbeat(t, queue.Heartbeat{Lease: lease}); got.Stop != 0 {
			c.Fatalf("a heartbeat returns %s", got.Stop)
		}
		if next := c.maintain(); !next.Equal(c.now.Add(lease)) {
			c.Errorf("the lease ends at %v, want %v", next, c.now.Add(lease))
		}
		c.is(queue.Running, id)
	}
	c.heartbeat(t, queue.Heartbeat{Lease: time.Second}) // shorter than the rest of the lease
	if got := c.task(id).Lease.Until; !got.Equal(c.now.Add(lease)) {
		c.Errorf("a heartbeat has shortened the lease to %v", got)
	}
	if t := c.task(id); len(t.Steps) != 2 {
		c.Errorf("heartbeats have made steps\n%s", life(t))
	}
}

func progressAndCheckpoint(c *trial) {
	id := c.add(queue.Options{})
	t := c.claimOne()
	checkpoint := []byte("half")
	half := queue.Progress{Done: 5, Total: 10, Note: "half of it"}
	c.heartbeat(t, queue.Heartbeat{Lease: lease, Progress: half, Checkpoint: checkpoint})
	checkpoint[0] = 'X'
	c.heartbeat(t, queue.Heartbeat{Lease: lease})
	if got := c.task(id); got.Progress != half || string(got.Checkpoint) != "half" {
		c.Errorf("after an empty heartbeat the task has progress %+v and checkpoint %q", got.Progress, got.Checkpoint)
	}
	c.heartbeat(t, queue.Heartbeat{Lease: lease, Progress: queue.Progress{Note: strings.Repeat("n", 1<<20)}})
	if n := len(c.task(id).Progress.Note); n < 4096 || n > 4200 {
		c.Errorf("the store keeps %d bytes of a note of 1 MiB", n)
	}
	c.expireLeases()
	if t = c.claimOne(); string(t.Checkpoint) != "half" || t.Progress != (queue.Progress{}) {
		c.Errorf("the next attempt starts with progress %+v and checkpoint %q", t.Progress, t.Checkpoint)
	}
	c.fails(t, queue.Outcome{Checkpoint: []byte("more")})
	if t = c.claimOne(); string(t.Checkpoint) != "more" {
		c.Errorf("the attempt after a failure starts with checkpoint %q", t.Checkpoint)
	}
	c.releases(t)
	if t = c.claimOne(); string(t.Checkpoint) != "more" {
		c.Errorf("the attempt after a release starts with checkpoint %q", t.Checkpoint)
	}
}

func lostLease(c *trial) {
	id := c.add(queue.Options{})
	first := c.claimOne()
	c.pass(lease - 1)
	if next := c.maintain(); !next.Equal(first.Lease.Until) {
		c.Errorf("the lease ends at %v, but Maintain returns %v", first.Lease.Until, next)
	}
	c.is(queue.Running, id)
	c.pass(1)
	c.maintain()
	t := c.task(id)
	if t.State != queue.Waiting || t.Crashes != 1 || t.Failures != 0 {
		c.Errorf("the task is %+v", t)
	}
	last := t.Steps[len(t.Steps)-1]
	if last.On != queue.OnLost || last.Token != first.Lease.Token || last.By != worker {
		c.Errorf("its last step is %+v", last)
	}
	second := c.claimOne()
	c.refused("the old worker settles", c.settle(first, queue.Outcome{Kind: queue.OutcomeSuccess}), queue.ErrStale)
	c.succeeds(second)
}

// lateLeaseIsGood shows that a lease that has run out stays valid until Maintain ends it.
func lateLeaseIsGood(c *trial) {
	ids := c.several(2, queue.Options{})
	tasks := c.claim(2)
	c.pass(time.Hour)
	c.succeeds(tasks[0])
	if got := c.heartbeat(tasks[1], queue.Heartbeat{Lease: lease}); got.Stop != 0 {
		c.Errorf("a late heartbeat returns %s", got.Stop)
	}
	c.maintain()
	c.is(queue.Succeeded, ids[0])
	c.is(queue.Running, ids[1])
}

func tokensGrow(c *trial) {
	c.add(queue.Options{MaxAttempts: 100, MaxCrashes: 100})
	var last queue.Token
	for i := range 20 {
		t := c.claimOne()
		if t.Lease.Token <= last {
			c.Fatalf("token %d comes after %d", t.Lease.Token, last)
		}
		last = t.Lease.Token
		switch i % 3 {
		case 0:
			c.expireLeases()
		case 1:
			c.fails(t, queue.Outcome{})
		default:
			c.releases(t)
		}
	}
}

func crashesInARow(c *trial) {
	usual := c.add(queue.Options{})
	once := c.addSpec(queue.Spec{Kind: "other", Payload: []byte("p"), Options: queue.Options{MaxCrashes: 1}})
	c.claim(2, kind, "other")
	c.expireLeases()
	c.is(queue.Dead, once)
	c.is(queue.Waiting, usual)
	c.claimOne()
	c.expireLeases()
	if t := c.task(usual); t.State != queue.Waiting || t.Crashes != 2 {
		c.Errorf("after 2 crashes it is %s with %d crashes", t.State, t.Crashes)
	}
	c.claimOne()
	c.expireLeases()
	t := c.task(usual)
	if t.State != queue.Dead || t.Crashes != 3 || t.Failures != 0 || t.Error == "" {
		c.Errorf("after 3 crashes the task is %+v", t)
	}
	c.started(5)
}

func failureIsNoCrash(c *trial) {
	id := c.add(queue.Options{MaxAttempts: 100, MaxCrashes: 2})
	for range 3 {
		c.claimOne()
		c.expireLeases()
		c.fails(c.claimOne(), queue.Outcome{}) // the worker survived, which resets the count
		if t := c.task(id); t.Crashes != 0 {
			c.Errorf("after a failure it has %d crashes in a row", t.Crashes)
		}
	}
	c.claimOne()
	c.expireLeases()
	c.releases(c.claimOne())
	c.claimOne() // a release does not reset the count
	c.expireLeases()
	c.is(queue.Dead, id)
}

func poisonIsRecognised(c *trial) {
	first := c.addPoison(queue.Spec{Payload: []byte("poison"), Options: queue.Options{Queue: queue.DefaultQueue}})
	same := queue.Spec{Payload: []byte("poison"), Options: queue.Options{Key: "k", Unique: "u", MaxCrashes: 5}}
	again := c.addSpec(same)
	t := c.task(again)
	if t.State != queue.Dead || len(t.Steps) != 1 || !strings.Contains(t.Error, first.String()) {
		c.Errorf("the same work is %s; its error %q should name task %s\n%s", t.State, t.Error, first, life(t))
	}
	elsewhere := same
	elsewhere.Queue, elsewhere.Unique = "other", ""
	c.is(queue.Dead, c.addSpec(elsewhere))
	c.started(5)
	food, poisonOfK := queue.Spec{Payload: []byte("food")}, queue.Spec{Payload: []byte("poison"), Kind: "k"}
	c.is(queue.Waiting, c.submitSpecs(food, poisonOfK)...)
	// A call may contain the same poison task twice.
	twice := c.freshSpec(queue.Spec{Payload: []byte("poison")})
	c.submitTasks(twice, twice)
	if t := c.task(twice.ID); t.State != queue.Dead || len(t.Steps) != 1 {
		c.Errorf("a poison task that was submitted twice in a call is %s\n%s", t.State, life(t))
	}
	c.command(queue.OrderRetry, again) // an operator may retry it
	c.is(queue.Waiting, again)
}

func poisonIsForgotten(c *trial) {
	spec := queue.Spec{Payload: []byte("poison")}
	first := c.addPoison(spec)
	c.command(queue.OrderRetry, first)
	if t := c.task(first); t.State != queue.Waiting || t.Crashes != 0 {
		c.Errorf("after a retry it is %s with %d crashes", t.State, t.Crashes)
	}
	second := c.addSpec(spec)
	c.is(queue.Waiting, second)
	c.claim(2)
	c.expireLeases()
	c.is(queue.Dead, first)
	c.is(queue.Waiting, second) // its MaxCrashes is larger
	c.is(queue.Dead, c.addSpec(spec))
	c.command(queue.OrderForget, first)
	c.is(queue.Waiting, c.addSpec(spec))
}

func heartbeatNeedsAName(c *trial) {
	for _, name := range []string{"", "w\n", "w\x1b[2J", "\xff", strings.Repeat("w", 201)} {
		_, err := c.Store.Heartbeat(c.Context(), c.now, queue.Worker{Name: name}, nil)
		c.refused(fmt.Sprintf("a heartbeat of %.10q", name), err, queue.ErrInvalid)
	}
	long := strings.Repeat("l", 201)
	for what, w := range map[string]queue.Worker{
		"host":  {Name: "w", Host: long},
		"queue": {Name: "w", Kinds: map[string][]string{long: {"k"}}},
		"kind":  {Name: "w", Kinds: map[string][]string{queue.DefaultQueue: {"k", long}}},
	} {
		_, err := c.Store.Heartbeat(c.Context(), c.now, w, nil)
		c.refused("a heartbeat of a worker with a long "+what, err, queue.ErrInvalid)
	}
	_, err := c.Store.Heartbeat(c.Context(), c.now, queue.Worker{Name: strings.Repeat("ü", 100)}, nil)
	c.ok("a heartbeat of a worker with a long name", err)
}
