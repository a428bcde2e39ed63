package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func totalCases() []testCase {
	return []testCase{
		{"C12_TotalOverQueues", Config{}, totalOverQueues},
		{"C12_TotalStarvesNoQueue", Config{}, totalStarvesNoQueue},
		{"C12_TotalReservesASlotForASecond", Config{}, totalReservesASlot},
		{"C12_TotalSkipsIdleQueues", Config{}, totalSkipsIdleQueues},
		{"C12_TotalIsLoweredAndRaised", Config{}, totalIsLoweredAndRaised},
		{"C12_TotalHasAReason", Config{}, totalHasAReason},
		{"C12_ReasonOfTheTotalNamesTen", Config{}, reasonOfTheTotalNamesTen},
		{"C12_TotalOfAKey", Config{}, totalOfAKey},
		{"C12_TotalOfOneKey", Config{}, totalOfOneKey},
		{"C12_TotalsOutliveTheStore", Config{}, totalsOutliveTheStore},
		{"C1_SignalAfterWhatMakesRoomInTheTotal", Config{}, signalsOfTheTotal},
		{"C1_SignalAfterWhatMakesRoomForAKey", Config{}, signalsOfTheTotalOfAKey},
		{"C1_NoWakeUpIsLostByTheTotal", Config{}, noWakeUpIsLostByTheTotal},
	}
}

// backlogs submits n tasks to each of the queues.
func (c *trial) backlogs(n int, names ...string) {
	c.Helper()
	for _, name := range names {
		c.several(n, queue.Options{Queue: name})
	}
}

// totalOverQueues shows that the default Max limits each queue, and Total all queues
// together.
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

// totalStarvesNoQueue shows that queues that wait for the total take turns, also if a
// worker of one of them always claims first, and as much as it can.
func totalStarvesNoQueue(c *trial) {
	const total, rounds = 2, 60
	names := []string{"greedy", "b", "c", "d"}
	c.configureQueue("", queue.Settings{Total: total})
	c.backlogs(rounds, names...)
	var running []queue.Task
	starts := make(map[string]int)
	waits := make(map[string]int) // by queue: starts of others since its worker was refused
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
					c.Fatalf("%d tasks of other queues have started since queue %s was refused", n, other)
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
			c.Errorf("of %d starts, %d are of queue %s; by queue: %v", rounds, n, name, starts)
		}
	}
}

// totalReservesASlot shows that a slot is reserved for a queue whose worker is gone for one
// second, and that claims of other queues have that time as their Next.
func totalReservesASlot(c *trial) {
	c.configureQueue("", queue.Settings{Total: 1})
	c.backlogs(3, "a", "gone", "b")
	first := c.claimFrom("a", 1)[0]
	for _, name := range []string{"gone", "b"} {
		if got := c.claimWith(queue.Claim{Queue: name, Max: 1}); len(got.Tasks) > 0 || !got.Next.IsZero() {
			c.Fatalf("while the total is reached a claim returns %+v", got)
		}
	}
	c.succeeds(first)
	until := c.now.Add(time.Second)
	for _, name := range []string{"b", "a"} {
		if got := c.claimWith(queue.Claim{Queue: name, Max: 1}); len(got.Tasks) > 0 || !got.Next.Equal(until) {
			c.Fatalf("while a slot is reserved a claim returns %+v, want Next %v", got, until)
		}
	}
	if next := c.maintain(); next.IsZero() || next.After(until) {
		c.Errorf("Maintain returns %v, want %v", next, until)
	}
	c.pass(time.Second)
	b := c.claimFrom("b", 1)
	if len(b) != 1 {
		c.Fatal("a second later no task of the queue that has waited longest starts")
	}
	if n := len(c.claimFrom("gone", 1)); n > 0 {
		c.Fatal("more tasks run than the total")
	}
	c.succeeds(b[0]) // the queue "gone" has a worker again
	if a, gone := c.claimFrom("a", 1), c.claimFrom("gone", 1); len(a) != 1 || len(gone) != 0 {
		c.Errorf("%d and %d tasks start, want 1 and 0: queue a was refused first", len(a), len(gone))
	}
}

// totalSkipsIdleQueues shows that no slot is reserved for a queue that is paused or has no
// task to start.
func totalSkipsIdleQueues(c *trial) {
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
	if n := len(c.claimFrom("reserved", 1)); n != 0 { // its claim returns the slot to other queues
		c.Fatalf("%d cancelled tasks start", n)
	}
	if n := len(c.claimFrom("b", 1)); n != 1 {
		c.Error("a queue that has tasks to start does not get the slot")
	}
}

// totalIsLoweredAndRaised shows that lowering a total does not stop running tasks, and that
// tasks start at once after it is raised or unset.
func totalIsLoweredAndRaised(c *trial) {
	c.configureQueue("", queue.Settings{Total: 4})
	c.backlogs(6, "a", "b")
	running := slices.Concat(c.claimFrom("a", 2), c.claimFrom("b", 2))
	c.configureQueue("", queue.Settings{Total: 2})
	for i, t := range running[:3] {
		n := len(c.claimFrom("a", 9)) + len(c.claimFrom("b", 9))
		if n > 0 {
			c.Fatalf("%d tasks start while %d run and the total is 2", n, 4-i)
		}
		c.succeeds(t)
	}
	// A slot is free; it belongs to the queue that was refused first.
	if n := len(c.claimFrom("a", 9)) + len(c.claimFrom("b", 9)); n != 1 {
		c.Fatalf("%d tasks start, want 1", n)
	}
	c.configureQueue("", queue.Settings{Total: 3})
	if n := len(c.claimFrom("b", 9)) + len(c.claimFrom("a", 9)); n != 1 {
		c.Errorf("%d tasks start after the total was raised by 1", n)
	}
	c.configureQueue("", queue.Settings{})
	if n := len(c.claimFrom("a", 9)) + len(c.claimFrom("b", 9)); n != 6 {
		c.Errorf("%d tasks start after the total was unset, want the remaining 6", n)
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

// reasonOfTheTotalNamesTen shows that a reason names at most ten tasks that hold slots, and the ten
// queues with the most of them.
func reasonOfTheTotalNamesTen(c *trial) {
	const queues = 12
	c.register(worker, kind)
	want := make(map[string]int)
	c.configureQueue("", queue.Settings{Total: 2 * queues})
	for i := range queues {
		name, n := fmt.Sprintf("q%02d", i), 1+i%2*2 // 1 or 3 tasks
		c.several(n, queue.Options{Queue: name})
		if got := len(c.claimFrom(name, n)); got != n {
			c.Fatalf("%d tasks of queue %s start, want %d", got, name, n)
		}
		if n == 3 || i < 8 { // six have 3 tasks; of those with 1 the first four
			want[name] = n
		}
	}
	r := c.firstReason(c.add(queue.Options{}), queue.CodeTotal)
	if len(r.Holders) != 10 {
		c.Errorf("the reason names %d tasks, want 10", len(r.Holders))
	}
	c.equal("the queues", r.Queues, want)
}

// totalOfAKey shows that tasks of a key that has reached its total over all queues are
// held in each queue, and in none after one of its tasks has ended.
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
		c.Fatalf("while a key is at its total, other tasks start: %v", b)
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
		c.Fatalf("after a task of the key has ended, %d start, want 1", n)
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

// totalsOutliveTheStore shows that leases of workers in other processes count after a
// crash.
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
		c.Errorf("beside two leases that survived, one of them of the key, start %v", b)
	}
}
