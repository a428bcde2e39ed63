package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func claimCases() []testCase {
	return []testCase{
		{"C1_ClaimedTask", Config{}, claimedTask},
		{"C1_InvalidClaims", Config{}, invalidClaims},
		{"C1_OnlyKnownKinds", Config{}, onlyKnownKinds},
		{"C1_OnlyTheClaimedQueue", Config{}, onlyTheQueue},
		{"C1_ClaimReturnsUpToMax", Config{}, claimUpToMax},
		{"C1_ClaimBytes", Config{}, claimOfBytes},
		{"C1_QueueLimit", Config{}, queueLimit},
		{"C1_KeyLimit", Config{}, keyLimit},
		{"C1_Caps", Config{}, tierCaps},
		{"C1_LimitsChange", Config{}, limitsChange},
		{"C1_RateIsSpentByStarts", Config{}, rateIsSpent},
		{"C1_RateBurst", Config{}, rateBurst},
		{"C1_KeyRate", Config{}, keyRate},
		{"C1_NextOnlyForARate", Config{}, nextOnlyIfARate},
		{"C1_PausedQueue", Config{}, pausedQueue},
		{"C1_PauseOfAll", Config{}, pauseOfAll},
	}
}

func claimedTask(c *trial) {
	options := queue.Options{Key: "k", Labels: map[string]string{"l": "v"}}
	id := c.addSpec(queue.Spec{Payload: []byte("payload"), Options: options})
	c.pass(time.Second)
	q := queue.Claim{Worker: "me", Max: 1, Lease: 3 * time.Minute} // "" is the default queue
	t := c.claimWith(q).Tasks[0]
	if t.ID != id || string(t.Payload) != "payload" || t.Labels["l"] != "v" || t.State != queue.Running {
		c.Errorf("the claimed task is %+v", t)
	}
	until := c.now.Add(3 * time.Minute)
	if l := t.Lease; l.Worker != "me" || l.Token == 0 || !l.Until.Equal(until) || !t.Changed.Equal(c.now) {
		c.Errorf("it has run since %v with the lease %+v", t.Changed, t.Lease)
	}
	last := t.Steps[len(t.Steps)-1]
	if last.On != queue.OnClaim || last.By != "me" || last.Token != t.Lease.Token {
		c.Errorf("its last step is %+v", last)
	}
	c.started(1)
}

func invalidClaims(c *trial) {
	c.add(queue.Options{})
	for what, q := range map[string]queue.Claim{
		"no worker": {Max: 1, Lease: lease},
		"no tasks":  {Worker: worker, Lease: lease},
		"fewer":     {Worker: worker, Lease: lease, Max: -1},
		"no lease":  {Worker: worker, Max: 1},
		"past":      {Worker: worker, Max: 1, Lease: -1},
		"control":   {Worker: "w\x1b[2J", Max: 1, Lease: lease},
		"long name": {Worker: strings.Repeat("w", 201), Max: 1, Lease: lease},
	} {
		q.Queue, q.Kinds = queue.DefaultQueue, []string{kind}
		_, err := c.Store.Claim(c.Context(), c.now, q)
		c.refused(what, err, queue.ErrInvalid)
	}
	if got := c.claimWith(queue.Claim{Kinds: []string{}, Max: 1}).Tasks; len(got) > 0 {
		c.Error("a worker that knows no kinds gets a task")
	}
	c.claimOne()
}

// onlyKnownKinds shows that a claim neither changes tasks of unknown kinds nor waits for
// them.
func onlyKnownKinds(c *trial) {
	unknown := c.submitSpecs(
		queue.Spec{Kind: "unknown", Options: queue.Options{Tier: stint.Highest}},
		queue.Spec{Kind: "unknown", Options: queue.Options{Key: "k"}},
	)
	known := c.submit(queue.Options{}, queue.Options{Key: "k"})
	c.started(2, known...)
	c.started(2)
	c.pass(time.Hour)
	c.maintain()
	c.is(queue.Waiting, unknown...)
	if t := c.task(unknown[0]); len(t.Steps) != 1 {
		c.Errorf("a claim has changed a task of an unknown kind\n%s", life(t))
	}
	if got := c.claim(3, "unknown"); len(got) != 2 {
		c.Errorf("a worker that knows the unknown kind gets %d tasks, want 2", len(got))
	}
}

func onlyTheQueue(c *trial) {
	other := c.add(queue.Options{Queue: "other", Tier: stint.Highest})
	mine := c.add(queue.Options{})
	c.started(5, mine)
	if got := c.claimFrom("other", 5); len(got) != 1 || got[0].ID != other {
		c.Errorf("a claim of the other queue returns %v", idsOf(got))
	}
	if got := c.claimFrom("unknown", 5); len(got) != 0 {
		c.Errorf("a claim of an unknown queue returns %v", idsOf(got))
	}
}

func claimUpToMax(c *trial) {
	for range 40 {
		c.submit(queue.Options{}, queue.Options{Key: "k", Tier: stint.Low})
		c.addSpec(queue.Spec{Kind: "other"})
	}
	if n := len(c.claim(7)); n != 7 {
		c.Errorf("a claim of up to 7 of 80 tasks returns %d", n)
	}
	if n := len(c.claim(500)); n != 73 {
		c.Errorf("a claim of all 73 remaining tasks returns %d", n)
	}
}

// claimOfBytes shows that a claim ends when its tasks have reached Bytes, returns at least
// one task, and sets Next if there may be more.
func claimOfBytes(c *trial) {
	ids := c.severalSpecs(6, queue.Spec{Payload: make([]byte, 10_000)})
	for _, want := range []struct{ bytes, tasks int }{{1, 1}, {25_000, 3}, {1 << 20, 2}} {
		got := c.claimWith(queue.Claim{Max: 5, Bytes: want.bytes})
		if first := ids[:want.tasks]; !slices.Equal(idsOf(got.Tasks), first) {
			c.Fatalf("a claim of up to %d bytes returns\n%v, want\n%v", want.bytes, idsOf(got.Tasks), first)
		}
		if ids = ids[want.tasks:]; len(ids) > 0 && (got.Next.IsZero() || got.Next.After(c.now)) {
			c.Errorf("a claim of up to %d bytes has Next %v; the time is %v", want.bytes, got.Next, c.now)
		}
	}
}

func queueLimit(c *trial) {
	c.configure(queue.Settings{Max: 3})
	c.several(6, queue.Options{})
	c.several(1, queue.Options{Queue: "other"})
	first := c.claim(2)
	if n := len(c.claim(5)); n != 1 {
		c.Fatalf("with 2 of 3 running, a claim returns %d tasks", n)
	}
	c.started(5)
	if got := c.claimFrom("other", 5); len(got) != 1 {
		c.Error("the limit of a queue holds tasks of another")
	}
	c.succeeds(first[0])
	c.fails(first[1], queue.Outcome{Permanent: true})
	if n := len(c.claim(5)); n != 2 {
		c.Errorf("after 2 have ended, a claim returns %d tasks", n)
	}
	c.expireLeases()
	if n := len(c.claim(5)); n != 3 {
		c.Errorf("after all leases are lost, a claim returns %d tasks", n)
	}
}

func keyLimit(c *trial) {
	c.configure(queue.Settings{PerKey: 2})
	a := c.several(4, queue.Options{Key: "a", Tier: stint.High})
	c.several(4, queue.Options{Key: "b"})
	free := c.several(4, queue.Options{})
	got := make(map[string][]queue.Task)
	for _, t := range c.claim(20) {
		got[t.Key] = append(got[t.Key], t)
	}
	if len(got["a"]) != 2 || len(got["b"]) != 2 || len(got[""]) != len(free) {
		c.Errorf("of keys a, b and none %d, %d and %d start; want 2, 2, 4", len(got["a"]), len(got["b"]), len(got[""]))
	}
	c.heldBy(a[2], queue.HoldKey)
	if h := c.task(a[2]).Holds[0]; h.What != "a" {
		c.Errorf("it is held by the key %q", h.What)
	}
	// A hold by the limit of a key has no step.
	c.succeeds(got["a"][0])
	c.is(queue.Waiting, a[2:]...)
	c.started(5, a[2])
	c.heldBy(a[3], queue.HoldKey)
	if t := c.task(a[3]); len(t.Steps) != 1 {
		c.Errorf("the limit of the key has made a step\n%s", life(t))
	}
}

// tierCaps makes fewer than eight starts, so that the starvation guard, which may start
// tasks past a cap, has no turn.
func tierCaps(c *trial) {
	c.configure(queue.Settings{Max: 10, Caps: stint.Caps{Low: 3, Lowest: 1}})
	lowest := c.several(2, queue.Options{Tier: stint.Lowest})
	low := c.several(5, queue.Options{Tier: stint.Low})
	c.started(10, low[:3]...)
	normal := c.several(2, queue.Options{})
	c.started(10, normal...)
	c.is(queue.Waiting, low[3:]...)
	c.is(queue.Waiting, lowest...)
}

func limitsChange(c *trial) {
	c.configure(queue.Settings{Max: 1, PerKey: 1})
	c.several(6, queue.Options{Key: "k"})
	running := c.claim(9)
	c.configure(queue.Settings{Max: 9, PerKey: 3})
	if running = append(running, c.claim(9)...); len(running) != 3 {
		c.Fatalf("after the limits were raised to 9, and 3 per key, %d tasks run", len(running))
	}
	c.configure(queue.Settings{Max: 2}) // no task starts until one runs
	c.started(9)
	c.succeeds(running[0])
	c.started(9)
	c.succeeds(running[1])
	if n := len(c.claim(9)); n != 1 {
		c.Errorf("with 1 running and the new limit of 2, a claim returns %d tasks", n)
	}
}

// rateIsSpent shows that a claim that starts no task spends nothing of the rate, and that
// an idle queue saves up no more than the burst.
func rateIsSpent(c *trial) {
	c.configure(queue.Settings{Rate: queue.Rate{PerSecond: 1}})
	c.started(5)
	c.started(5)
	ids := c.several(4, queue.Options{})
	start := c.now
	got := c.claimWith(queue.Claim{Max: 5})
	if len(got.Tasks) != 1 || !got.Next.Equal(start.Add(time.Second)) {
		c.Fatalf("a claim returns %d tasks and Next %v; the time is %v", len(got.Tasks), got.Next, start)
	}
	c.pass(time.Second - 1)
	if got := c.claimWith(queue.Claim{Max: 5}); len(got.Tasks) != 0 || !got.Next.Equal(start.Add(time.Second)) {
		c.Errorf("too early, a claim returns %d tasks and Next %v", len(got.Tasks), got.Next)
	}
	c.pass(1)
	c.started(5, ids[1])
	c.configure(queue.Settings{Rate: queue.Rate{PerSecond: 1}, Max: 100})
	c.started(5)
	c.pass(time.Hour)
	c.maintain() // the leases expire, so that all tasks can start
	if n := len(c.claim(5)); n != 1 {
		c.Errorf("after an hour, %d start at once, want 1", n)
	}
}

func rateBurst(c *trial) {
	c.configure(queue.Settings{Rate: queue.Rate{PerSecond: 10, Burst: 3}})
	ids := c.several(10, queue.Options{})
	c.started(10, ids[:3]...)
	c.pass(200 * time.Millisecond)
	c.started(10, ids[3:5]...)
	c.pass(time.Second)
	got := c.claimWith(queue.Claim{Max: 2})
	if len(got.Tasks) != 2 || !got.Next.IsZero() {
		c.Errorf("a claim of up to 2 tasks returns %d and Next %v, want 2 and none", len(got.Tasks), got.Next)
	}
	c.started(10, ids[7])
}

func keyRate(c *trial) {
	c.configure(queue.Settings{KeyRate: queue.Rate{PerSecond: 2}})
	a := c.several(3, queue.Options{Key: "a", Tier: stint.High})
	b := c.several(1, queue.Options{Key: "b"})
	free := c.several(3, queue.Options{Tier: stint.Low})
	start := c.now
	got := c.claimWith(queue.Claim{Max: 20})
	if len(got.Tasks) != 5 || !got.Next.Equal(start.Add(time.Second/2)) {
		c.Errorf("%d tasks start, with Next %v; want %d, half a second after %v", len(got.Tasks), got.Next, 5, start)
	}
	c.is(queue.Running, a[0], b[0], free[0], free[1], free[2])
	c.heldBy(a[1], queue.HoldKeyRate)
	c.pass(time.Second / 2)
	if got := c.claimWith(queue.Claim{Max: 20}); len(got.Tasks) != 1 || got.Tasks[0].ID != a[1] {
		c.Errorf("half a second later %d start", len(got.Tasks))
	}
	c.configure(queue.Settings{KeyRate: queue.Rate{PerSecond: 2}, Max: 50})
	c.started(20)
}

// nextOnlyIfARate shows that a claim sets Next only if a task can start then.
func nextOnlyIfARate(c *trial) {
	waits := func(when string) {
		c.Helper()
		if got := c.claimWith(queue.Claim{Max: 5}); len(got.Tasks) != 0 || !got.Next.IsZero() {
			c.Errorf("%s, a claim returns %d tasks and Next %v", when, len(got.Tasks), got.Next)
		}
	}
	c.configure(queue.Settings{Rate: queue.Rate{PerSecond: 1}, KeyRate: queue.Rate{PerSecond: 1}})
	waits("with no tasks")
	c.add(queue.Options{Key: "k"})
	c.claimOne()
	waits("after the only one has started")
	c.addSpec(queue.Spec{Kind: "unknown", Options: queue.Options{Key: "k"}})
	c.submit(queue.Options{Queue: "other"}, queue.Options{RunAt: c.now.Add(time.Hour)})
	waits("with tasks that do not match the claim")
}

func pausedQueue(c *trial) {
	ids := c.several(2, queue.Options{})
	other := c.add(queue.Options{Queue: "other"})
	running := c.claimOne()
	c.pause(queue.DefaultQueue, &queue.Pause{By: operator, Reason: "because"})
	if got := c.claimWith(queue.Claim{Max: 5}); len(got.Tasks) != 0 || !got.Next.IsZero() {
		c.Errorf("%d tasks of a paused queue start", len(got.Tasks))
	}
	c.heldBy(ids[1], queue.HoldQueuePaused)
	c.is(queue.Waiting, other)
	c.is(queue.Running, ids[0])
	c.succeeds(running) // a pause does not stop running tasks
	late := c.add(queue.Options{})
	c.heldBy(late, queue.HoldQueuePaused)
	c.configure(queue.Settings{Max: 5}) // does not end the pause
	c.heldBy(late, queue.HoldQueuePaused)
	c.pause(queue.DefaultQueue, nil)
	c.is(queue.Waiting, ids[1], late)
	c.started(5, ids[1], late)
}

func pauseOfAll(c *trial) {
	mine, other := c.add(queue.Options{}), c.add(queue.Options{Queue: "other"})
	c.configure(queue.Settings{Max: 3})
	c.pause("", &queue.Pause{By: operator})
	later := c.add(queue.Options{Queue: "later"}) // a pause of all includes queues that are new
	for _, id := range []queue.ID{mine, other, later} {
		c.heldBy(id, queue.HoldQueuePaused)
	}
	for _, name := range []string{queue.DefaultQueue, "other", "later"} {
		if got := c.claimWith(queue.Claim{Queue: name, Max: 5}); len(got.Tasks) != 0 {
			c.Errorf("while all queues are paused, a task of queue %s starts", name)
		}
	}
	c.pause("", nil)
	c.is(queue.Waiting, mine, other, later)
	c.started(5, mine)
}
