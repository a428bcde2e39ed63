package storetest

import (
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func totalCases() []testCase {
	return []testCase{
		{"C12_TotalOverQueues", Config{}, totalOverQueues},
		{"C12_TotalStarvesNoQueue", Config{}, totalStarvesNoQueue},
		{"C12_TotalWaitsForNobody", Config{}, totalWaitsForNobody},
		{"C12_TotalPassesQueuesWithNothingToStart", Config{}, totalPassesIdleQueues},
		{"C12_TotalIsLoweredAndRaised", Config{}, totalIsLoweredAndRaised},
		{"C12_TotalHasAReason", Config{}, totalHasAReason},
		{"C12_TotalOfAKey", Config{}, totalOfAKey},
		{"C12_TotalOfOneKey", Config{}, totalOfOneKey},
		{"C12_TotalsOutliveTheStore", Config{}, totalsOutliveTheStore},
		{"C1_SignalAfterWhatMakesRoomInTheTotal", Config{}, signalsOfTheTotal},
		{"C1_SignalAfterWhatMakesRoomForAKey", Config{}, signalsOfTheTotalOfAKey},
		{"C1_NoWakeUpIsLostByTheTotal", Config{}, noWakeUpIsLostByTheTotal},
	}
}

// backlogs submits tasks to queues, n to each.
func (c *trial) backlogs(n int, names ...string) {
	c.Helper()
	for _, name := range names {
		c.several(n, queue.Options{Queue: name})
	}
}

// totalOverQueues shows that a default is one of each queue, and a total one of all.
func totalOverQueues(c *trial) {
	c.backlogs(5, "a", "b")
	c.configureQueue("", queue.Settings{Max: 3})
	a, b := c.claimFrom("a", 9), c.claimFrom("b", 9)
	if len(a) != 3 || len(b) != 3 {
		c.Fatalf("with a default of 3, %d and %d tasks run; want 3 of each", len(a), len(b))
	}
	for _, t := range slices.Concat(a, b) {
		c.releases(t)
	}
	c.configureQueue("", queue.Settings{Total: 3})
	if a, b := c.claimFrom("a", 2), c.claimFrom("b", 9); len(a) != 2 || len(b) != 1 {
		c.Errorf("with a total of 3, %d and %d tasks run; want 2 and 1", len(a), len(b))
	}
}

// totalStarvesNoQueue shows that queues that wait for the total take turns, though a
// worker of one of them always comes first, and asks for all that there is.
func totalStarvesNoQueue(c *trial) {
	const total, rounds = 2, 60
	names := []string{"greedy", "b", "c", "d"}
	c.configureQueue("", queue.Settings{Total: total})
	c.backlogs(rounds, names...)
	var running []queue.Task
	starts := make(map[string]int)
	waits := make(map[string]int) // starts of others since its worker was refused
	for range rounds {
		for _, name := range names {
			got := c.claimFrom(name, 9)
			for range got {
				for other := range waits {
					waits[other]++
				}
			}
			if starts[name] += len(got); len(got) > 0 {
				delete(waits, name)
			} else if _, refused := waits[name]; !refused {
				waits[name] = 0
			}
			running = append(running, got...)
			for other, n := range waits {
				if n >= len(names) {
					c.Fatalf("%d tasks of others have started since queue %s was refused", n, other)
				}
			}
		}
		if len(running) != total {
			c.Fatalf("%d tasks run, want %d", len(running), total)
		}
		c.succeeds(running[0])
		running = running[1:]
		c.pass(time.Millisecond)
	}
	for _, name := range names {
		if n := starts[name]; n < rounds/len(names)-1 || n > rounds/len(names)+total {
			c.Errorf("of %d starts, %d are of queue %s: %v", rounds, n, name, starts)
		}
	}
}

// totalWaitsForNobody shows that a queue whose worker has gone keeps a slot from others
// for a second, and no longer, and that those are told when.
func totalWaitsForNobody(c *trial) {
	c.configureQueue("", queue.Settings{Total: 1})
	c.backlogs(3, "a", "gone", "b")
	first := c.claimFrom("a", 1)[0]
	for _, name := range []string{"gone", "b"} {
		if got := c.claimWith(queue.Claim{Queue: name, Max: 1}); len(got.Tasks) > 0 || !got.Next.IsZero() {
			c.Fatalf("while the total is reached a claim gets %+v", got)
		}
	}
	c.succeeds(first)
	until := c.now.Add(time.Second)
	for _, name := range []string{"b", "a"} {
		if got := c.claimWith(queue.Claim{Queue: name, Max: 1}); len(got.Tasks) > 0 || !got.Next.Equal(until) {
			c.Fatalf("while a slot is reserved a claim gets %+v, want to come back at %v", got, until)
		}
	}
	if next := c.maintain(); next.IsZero() || next.After(until) {
		c.Errorf("Maintain is to be called at %v, want %v", next, until)
	}
	c.pass(time.Second)
	b := c.claimFrom("b", 1)
	if len(b) != 1 {
		c.Fatal("a second later nothing starts of the queue that has waited longest of those that are there")
	}
	if n := len(c.claimFrom("gone", 1)); n > 0 {
		c.Fatal("more than the total runs")
	}
	c.succeeds(b[0]) // and now it has a worker again
	if a, gone := c.claimFrom("a", 1), c.claimFrom("gone", 1); len(a) != 1 || len(gone) != 0 {
		c.Errorf("%d and %d tasks start, want one of the queue that was refused first", len(a), len(gone))
	}
}

// totalPassesIdleQueues shows that no slot is reserved for a queue that has nothing to
// start any more, or is paused.
func totalPassesIdleQueues(c *trial) {
	c.configureQueue("", queue.Settings{Total: 1})
	c.backlogs(2, "a", "paused", "emptied", "reserved", "b")
	first := c.claimFrom("a", 1)[0]
	for _, name := range []string{"paused", "emptied", "reserved", "b"} {
		c.claimFrom(name, 1)
	}
	c.pause("paused", &queue.Pause{})
	c.commandWith(queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{Queue: "emptied"}})
	c.succeeds(first)
	c.commandWith(queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{Queue: "reserved"}})
	if n := len(c.claimFrom("reserved", 1)); n != 0 { // it looks, and leaves its slot to others
		c.Fatalf("%d tasks start that were cancelled", n)
	}
	if n := len(c.claimFrom("b", 1)); n != 1 {
		c.Error("a slot is kept from a queue that has tasks to start")
	}
}

// totalIsLoweredAndRaised shows that a total that is lowered stops nothing that runs,
// and that one that is raised or unset lets tasks start at once.
func totalIsLoweredAndRaised(c *trial) {
	c.configureQueue("", queue.Settings{Total: 4})
	c.backlogs(6, "a", "b")
	running := slices.Concat(c.claimFrom("a", 2), c.claimFrom("b", 2))
	c.configureQueue("", queue.Settings{Total: 2})
	for i, t := range running[:3] {
		n := len(c.claimFrom("a", 9)) + len(c.claimFrom("b", 9))
		if n > 0 {
			c.Fatalf("%d tasks start, while %d run of a total of 2", n, 4-i)
		}
		c.succeeds(t)
	}
	// A slot is free; whose it is depends on who was refused first.
	if n := len(c.claimFrom("a", 9)) + len(c.claimFrom("b", 9)); n != 1 {
		c.Fatalf("%d tasks start, want 1", n)
	}
	c.configureQueue("", queue.Settings{Total: 3})
	if n := len(c.claimFrom("b", 9)) + len(c.claimFrom("a", 9)); n != 1 {
		c.Errorf("%d tasks start when the total is raised by 1", n)
	}
	c.configureQueue("", queue.Settings{})
	if n := len(c.claimFrom("a", 9)) + len(c.claimFrom("b", 9)); n != 6 {
		c.Errorf("%d tasks start when there is no total any more, want all 6 that are left", n)
	}
}

func totalHasAReason(c *trial) {
	c.register(worker, kind)
	c.backlogs(1, "a", "b")
	c.change("", queue.Change{Operator: true, By: "ann", Set: queue.Settings{Total: 2}})
	at := c.now
	running := idsOf(slices.Concat(c.claimFrom("a", 1), c.claimFrom("b", 1)))
	r := c.firstReason(c.add(queue.Options{}), queue.CodeTotal)
	slices.SortFunc(r.Holders, compareIDs)
	slices.SortFunc(running, compareIDs)
	if r.Limit != 2 || r.Running != 2 || !slices.Equal(r.Holders, running) || r.SetBy.By != "ann" {
		c.Errorf("the reason is %+v", r)
	}
	c.equal("the queues", r.Queues, map[string]int{"a": 1, "b": 1})
	stats := c.stats()
	c.equal("the totals", stats.Total, queue.Total{
		Running: 2,
		Limits: queue.Layer{Settings: queue.Settings{Total: 2}, From: map[queue.Field]queue.Origin{
			queue.FieldTotal: {Operator: true, By: "ann", At: at, Default: true},
		}},
	})
}

// totalOfAKey shows that a key that has as many tasks running in all queues as it may
// is held in each of them, and in none when one has ended.
func totalOfAKey(c *trial) {
	c.register(worker, kind)
	c.configureQueue("", queue.Settings{TotalPerKey: 2})
	held := make(map[string]queue.ID)
	for _, name := range []string{"a", "b", queue.DefaultQueue} {
		c.several(2, queue.Options{Queue: name, Key: "k"})
		held[name] = c.add(queue.Options{Queue: name, Key: "k"})
		c.add(queue.Options{Queue: name, Key: "other " + name})
	}
	a := slices.DeleteFunc(c.claimFrom("a", 9), func(t queue.Task) bool { return t.Key != "k" })
	if len(a) != 2 {
		c.Fatalf("%d tasks of the key start, want 2", len(a))
	}
	for _, id := range held {
		c.heldBy(id, queue.HoldKeyTotal)
	}
	if b := c.claimFrom("b", 9); len(b) != 1 || b[0].Key != "other b" {
		c.Fatalf("beside a key at its total there start %v", b)
	}
	late := c.add(queue.Options{Queue: "b", Key: "k"})
	c.heldBy(late, queue.HoldKeyTotal)
	r := c.firstReason(held[queue.DefaultQueue], stint.Code(queue.HoldKeyTotal))
	if r.Key != "k" || r.Limit != 2 || r.Running != 2 || len(r.Holders) != 2 {
		c.Errorf("the reason is %+v", r)
	}
	c.equal("the queues", r.Queues, map[string]int{"a": 2})
	c.succeeds(a[0])
	for _, id := range held {
		c.is(queue.Waiting, id)
	}
	if n := len(c.claimFrom("b", 9)); n != 1 {
		c.Fatalf("when a task of the key has ended %d start, want 1", n)
	}
	for _, id := range held {
		c.heldBy(id, queue.HoldKeyTotal)
	}
	c.configureQueue("", queue.Settings{})
	if n := len(c.claimFrom("b", 9)); n != 3 {
		c.Errorf("without the limit %d tasks start, want 3", n)
	}
}

// totalOfOneKey shows that a key can have a total of its own.
func totalOfOneKey(c *trial) {
	c.configureQueue("", queue.Settings{TotalPerKey: 1})
	c.change("", queue.Change{Key: "large", Set: queue.Settings{Total: 3}})
	c.change("", queue.Change{Key: "free", Unlimited: []queue.Field{queue.FieldTotal}})
	for _, name := range []string{"a", "b"} {
		for _, key := range []string{"large", "free", "other"} {
			c.several(4, queue.Options{Queue: name, Key: key})
		}
	}
	running := make(map[string]int)
	for _, t := range slices.Concat(c.claimFrom("a", 50), c.claimFrom("b", 50)) {
		running[t.Key]++
	}
	c.equal("what runs", running, map[string]int{"large": 3, "free": 8, "other": 1})
	stats := c.stats()
	c.equal("the keys", stats.Total.Keys, map[string]int{"large": 3, "free": 8})
}

// totalsOutliveTheStore shows that leases count that go on in another process.
func totalsOutliveTheStore(c *trial) {
	c.configureQueue("", queue.Settings{Total: 3, TotalPerKey: 1})
	for _, name := range []string{"a", "b"} {
		c.submit(queue.Options{Queue: name, Key: "k"}, queue.Options{Queue: name}, queue.Options{Queue: name})
	}
	remote := c.claimWith(queue.Claim{Queue: "a", Max: 2, Remote: true}).Tasks
	if len(remote) != 2 {
		c.Fatalf("%d tasks start", len(remote))
	}
	if !c.crash() || c.PowerLoss {
		return
	}
	if b := c.claimFrom("b", 9); len(b) != 1 || b[0].Key != "" {
		c.Errorf("beside two leases that go on, one of them of the key, there start %v", b)
	}
}
