package storetest

import (
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func orderCases() []testCase {
	return []testCase{
		{"C1_HigherTierFirst", Config{}, higherTierFirst},
		{"C1_FIFOInACall", Config{}, fifoInACall},
		{"C1_FIFOWithinTierAndKey", Config{}, fifoWithinTierAndKey},
		{"C1_KeysTakeTurns", Config{}, keysTakeTurns},
		{"C1_NewKeyDoesNotWaitForABacklog", Config{}, newKey},
		{"C1_GuardsShare", Config{}, guardsShare},
		{"C1_GuardKeepsLimits", Config{}, guardKeepsLimits},
		{"C1_DelayedKeepsItsAge", Config{}, delayedKeepsItsAge},
		{"C2_RetriedKeepsTierAndAge", Config{}, retriedKeepsItsAge},
		{"C5_ReleasedKeepsTierAndAge", Config{}, releasedKeepsItsAge},
		{"C6_LostKeepsTierAndAge", Config{}, lostKeepsItsAge},
		{"C3_DeadRetriedKeepsTierAndAge", Config{}, deadKeepsItsAge},
	}
}

func higherTierFirst(c *trial) {
	var want []queue.ID
	for tier := stint.Lowest; tier <= stint.Highest; tier++ {
		want = append(want, c.add(queue.Options{Tier: tier}))
	}
	slices.Reverse(want)
	c.started(4, want[:4]...)
	high := c.add(queue.Options{Tier: stint.High})
	c.started(3, append([]queue.ID{high}, want[4:6]...)...)
}

// fifoInACall shows that the tasks of a call start in its order, not in that of their IDs.
func fifoInACall(c *trial) {
	var call []queue.NewTask
	for range 5 {
		call = append(call, c.fresh(queue.Options{}))
	}
	slices.Reverse(call)
	c.submitTasks(call...)
	for _, t := range call {
		c.started(1, t.ID)
	}
}

func fifoWithinTierAndKey(c *trial) {
	kinds := []string{"a", "b", "c"}
	var want []queue.ID
	for i := range 24 {
		want = append(want, c.addSpec(queue.Spec{Kind: kinds[i%5%3], Options: queue.Options{Key: "k"}}))
		if i%3 == 0 {
			c.pass(time.Millisecond)
		}
	}
	for i := 0; i < len(want); i += 4 {
		if got := idsOf(c.claim(4, kinds...)); !slices.Equal(got, want[i:i+4]) {
			c.Fatalf("a claim gives\n%v, want\n%v", got, want[i:i+4])
		}
	}
}

// keysTakeTurns shows that keys with backlogs start equally many tasks.
func keysTakeTurns(c *trial) {
	const each = 12
	for _, key := range []string{"a", "b", "", "c"} { // each key has a backlog before the next
		c.several(each, queue.Options{Key: key})
	}
	starts := make(map[string]int)
	for i := range 4 * each {
		starts[c.claimOne().Key]++
		for key, n := range starts {
			if fair := i/4 + 2; n > fair { // one more than its share, for the key that goes first
				c.Fatalf("key %[2]q has %[3]d of %[1]d starts", i+1, key, n)
			}
		}
	}
}

func newKey(c *trial) {
	c.several(50, queue.Options{Key: "busy"})
	c.claim(10)
	late := c.add(queue.Options{Key: "late"})
	if got := idsOf(c.claim(2)); !slices.Contains(got, late) {
		c.Errorf("two more tasks of the busy key start before the first task of a new key")
	}
}

// guardsShare shows both bounds of the starvation guard: lower tiers start while a higher
// one has tasks, but at most in every eighth start.
func guardsShare(c *trial) {
	const starts, share = 112, 8
	for range starts {
		c.submit(queue.Options{Tier: stint.High}, queue.Options{}, queue.Options{Tier: stint.Lowest})
	}
	lower := make(map[stint.Priority]int)
	for i := range starts {
		t := c.claimOne()
		if lower[t.Tier]++; t.Tier == stint.High {
			continue
		}
		if n := lower[stint.Normal] + lower[stint.Lowest]; n > i/share+1 {
			c.Fatalf("of %d starts, %d are of lower tiers", i+1, n)
		}
	}
	// Each tier has a turn in 56 turns.
	if lower[stint.Normal] < starts/56 || lower[stint.Lowest] < starts/56 {
		c.Errorf("of %d starts, %d are of the middle tier and %d of the lowest; want at least %d of each",
			starts, lower[stint.Normal], lower[stint.Lowest], starts/56)
	}
}

// guardKeepsLimits shows that the guard ignores caps, but no other limit.
func guardKeepsLimits(c *trial) {
	const limit, ofKey, starts = 3, 2, 120
	c.configure(queue.Settings{Max: limit, PerKey: ofKey, Caps: stint.Caps{Lowest: 1, Low: 2}})
	for range starts {
		c.submit(queue.Options{Tier: stint.High, Key: "a"}, queue.Options{}, queue.Options{Tier: stint.Low},
			queue.Options{Tier: stint.Lowest, Key: "a"})
	}
	for range starts {
		c.claim(limit + 1)
		running := c.find(queue.Filter{States: []queue.State{queue.Running}})
		keys := make(map[string]int)
		for _, t := range running {
			keys[t.Key]++
		}
		if len(running) != limit || keys["a"] > ofKey {
			c.Fatalf("%d tasks run, %d of one key; the limits are %d and %d", len(running), keys["a"], limit, ofKey)
		}
		c.succeeds(running[c.now.Nanosecond()%limit])
		c.pass(1)
	}
}

func delayedKeepsItsAge(c *trial) {
	delayed := c.add(queue.Options{RunAt: c.now.Add(time.Second)})
	c.pass(time.Millisecond)
	second := c.add(queue.Options{})
	c.started(1, second)
	third := c.add(queue.Options{})
	c.pass(time.Second)
	c.maintain()
	c.started(2, delayed, third)
}

// keepsItsAge submits a task and a younger one, calls end while the first runs, and checks
// that the first still starts before the second.
func (c *trial) keepsItsAge(end func(t queue.Task)) {
	c.Helper()
	first := c.add(queue.Options{Tier: stint.High, Key: "k"})
	c.pass(time.Millisecond)
	t := c.claimOne()
	second := c.add(queue.Options{Tier: stint.High, Key: "k"})
	lower := c.add(queue.Options{Key: "k"})
	end(t)
	c.started(3, first, second, lower)
}

func retriedKeepsItsAge(c *trial) {
	c.keepsItsAge(func(t queue.Task) {
		c.fails(t, queue.Outcome{RunAt: c.now.Add(time.Second)})
		c.pass(time.Second)
		c.maintain()
	})
}

func releasedKeepsItsAge(c *trial) {
	c.keepsItsAge(func(t queue.Task) { c.releases(t) })
}

func lostKeepsItsAge(c *trial) { c.keepsItsAge(func(queue.Task) { c.expireLeases() }) }

func deadKeepsItsAge(c *trial) {
	c.keepsItsAge(func(t queue.Task) {
		c.fails(t, queue.Outcome{Permanent: true})
		c.command(queue.OrderRetry, t.ID)
	})
}
