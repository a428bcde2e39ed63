package storetest

import (
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func findCases() []testCase {
	return []testCase{
		{"C4_Filters", Config{}, filters},
		{"C4_FindByState", Config{}, findByState},
		{"C4_Pages", Config{}, pages},
		{"C4_PagesUnderChanges", Config{}, pagesUnderChanges},
		{"C4_PageBytes", Config{}, pagesOfBytes},
		{"C4_Stats", Config{}, statsAddUp},
		{"C4_StatsOfWorkers", Config{}, statsOfWorkers},
	}
}

func filters(c *trial) {
	batch := c.ids.New(c.now)
	start := c.now
	specs := []queue.Spec{
		{Options: queue.Options{Key: "k", Labels: map[string]string{"a": "1", "b": "2"}}},
		{Options: queue.Options{Queue: "other", Group: "g", Labels: map[string]string{"a": "1"}}},
		{Kind: "kind", Options: queue.Options{Batch: batch, Labels: map[string]string{"a": ""}}},
		{Options: queue.Options{Key: "k", Queue: "other"}},
	}
	ids := make([]queue.ID, len(specs))
	for i, s := range specs {
		ids[i] = c.addSpec(s)
		c.pass(time.Second)
	}
	failed := c.claimWith(queue.Claim{Worker: "w", Max: 1}).Tasks[0]
	c.fails(failed, queue.Outcome{Error: "exit status 12", RunAt: c.now.Add(time.Hour)})
	c.claimWith(queue.Claim{Worker: "w", Queue: "other", Max: 1})
	for _, test := range []struct {
		what string
		f    queue.Filter
		want []int
	}{
		{"no field", queue.Filter{}, []int{0, 1, 2, 3}},
		{"ids", queue.Filter{IDs: []queue.ID{ids[3], ids[1], ids[3], c.ids.New(c.now)}}, []int{1, 3}},
		{"no ids", queue.Filter{IDs: []queue.ID{}}, nil},
		{"no ids, and a queue", queue.Filter{IDs: []queue.ID{}, Queue: "other"}, nil},
		{"ending", queue.Filter{Ending: digits(ids[2])[20:]}, []int{2}},
		{"the whole ID as its ending", queue.Filter{Ending: digits(ids[2])}, []int{2}},
		{"an ending of one digit", queue.Filter{Ending: digits(ids[2])[31:], IDs: ids[2:3]}, []int{2}},
		{"ending and queue", queue.Filter{Ending: digits(ids[2])[20:], Queue: "other"}, nil},
		{"the ending of no ID", queue.Filter{Ending: "x"}, nil},
		{"an ending in capitals", queue.Filter{Ending: "A" + strings.Repeat("0", 11)}, nil},
		{"more digits than IDs have", queue.Filter{Ending: "0" + digits(ids[2])}, nil},
		{"queue", queue.Filter{Queue: "other"}, []int{1, 3}},
		{"unknown queue", queue.Filter{Queue: "others"}, nil},
		{"kind", queue.Filter{Kind: "kind"}, []int{2}},
		{"key", queue.Filter{Key: "k"}, []int{0, 3}},
		{"group", queue.Filter{Group: "g"}, []int{1}},
		{"batch", queue.Filter{Batch: batch}, []int{2}},
		{"worker", queue.Filter{Worker: "w"}, []int{1}},
		{"state", queue.Filter{States: []queue.State{queue.Scheduled}}, []int{0}},
		{"states", queue.Filter{States: []queue.State{queue.Waiting, queue.Running}}, []int{1, 2, 3}},
		{"label", queue.Filter{Labels: map[string]string{"a": "1"}}, []int{0, 1}},
		{"labels", queue.Filter{Labels: map[string]string{"a": "1", "b": "2"}}, []int{0}},
		{"empty label", queue.Filter{Labels: map[string]string{"a": ""}}, []int{2}},
		{"unknown label", queue.Filter{Labels: map[string]string{"c": ""}}, nil},
		{"error", queue.Filter{Error: "status 1"}, []int{0}},
		{"from", queue.Filter{From: start.Add(2 * time.Second)}, []int{2, 3}},
		{"to", queue.Filter{To: start.Add(2 * time.Second)}, []int{0, 1}},
		{"both", queue.Filter{From: start.Add(1), To: start.Add(3 * time.Second)}, []int{1, 2}},
		{"all together", queue.Filter{Queue: "other", Key: "k", Kind: kind, From: start}, []int{3}},
	} {
		var want []queue.ID
		for _, i := range test.want {
			want = append(want, ids[i])
		}
		if got := idsOf(c.find(test.f)); !slices.Equal(got, want) {
			c.Errorf("the filter %q finds %d tasks, want %d:\n%v, want\n%v", test.what, len(got), len(want), got, want)
		}
	}
}

// digits returns the 32 hexadecimal digits of an ID.
func digits(id queue.ID) string { return hex.EncodeToString(id[:]) }

func findByState(c *trial) {
	ids := make(map[queue.State]queue.ID)
	for _, state := range queue.States() {
		ids[state] = c.addInState(state)
	}
	for state, id := range ids {
		found := c.find(queue.Filter{States: []queue.State{state}})
		if !slices.Contains(idsOf(found), id) {
			c.Errorf("the task that is %s is not among the %d tasks found by that state", state, len(found))
		}
	}
}

// page returns the IDs of one page.
func (c *trial) page(f queue.Filter, p queue.Page) []queue.ID {
	c.Helper()
	tasks, err := c.Store.Find(c.Context(), f, p)
	c.ok("Find", err)
	return idsOf(tasks)
}

func pages(c *trial) {
	ids := c.several(250, queue.Options{})
	if got := c.page(queue.Filter{}, queue.Page{}); !slices.Equal(got, ids[:100]) {
		c.Errorf("a page without a Limit has %d tasks, want the first 100", len(got))
	}
	for _, newest := range []bool{false, true} {
		want, got := slices.Clone(ids), []queue.ID(nil)
		if newest {
			slices.Reverse(want)
		}
		p := queue.Page{Newest: newest, Limit: 60}
		for {
			page := c.page(queue.Filter{}, p)
			if got = append(got, page...); len(page) < p.Limit {
				break
			}
			p.After = page[len(page)-1]
		}
		if !slices.Equal(got, want) {
			c.Errorf("with Newest %t, pages list %d tasks in the wrong order, or not all %d", newest, len(got), len(want))
		}
	}
	some := queue.Filter{IDs: ids[10:20]}
	if got := c.page(some, queue.Page{Newest: true, Limit: 3}); len(got) != 3 || got[0] != ids[19] {
		c.Errorf("the newest 3 of 10 are %v", got)
	}
	if got := c.page(queue.Filter{}, queue.Page{After: ids[249]}); len(got) != 0 {
		c.Errorf("the page after the last task has %v", got)
	}
}

// pagesOfBytes shows that a page ends with the task that reaches Bytes, has at least one
// task, and that pages leave out no task between them.
func pagesOfBytes(c *trial) {
	ids := c.severalSpecs(20, queue.Spec{Payload: make([]byte, 10_000)})
	for _, bytes := range []int{1, 10_000, 35_000, 1 << 20} {
		p := queue.Page{Limit: len(ids), Bytes: bytes}
		var seen []queue.ID
		for {
			page, err := c.Store.Find(c.Context(), queue.Filter{}, p)
			c.ok("Find", err)
			size := 0
			for i := range page {
				if size >= bytes {
					c.Errorf("a page of %d bytes has %d tasks of %d bytes each", bytes, len(page), page[i].Size())
				}
				size += page[i].Size()
			}
			if seen = append(seen, idsOf(page)...); size < bytes && len(page) < p.Limit {
				break // the last page
			}
			p.After = seen[len(seen)-1]
		}
		if !slices.Equal(seen, ids) {
			c.Errorf("pages of %d bytes list, of %d tasks: %v", bytes, len(ids), seen)
		}
	}
}

// pagesUnderChanges shows that pages list each task that stays exactly once while other
// tasks change or are forgotten.
func pagesUnderChanges(c *trial) {
	ids := c.several(40, queue.Options{})
	var seen []queue.ID
	p := queue.Page{Limit: 10}
	for {
		page := c.page(queue.Filter{}, p)
		seen = append(seen, page...)
		if len(page) < p.Limit {
			break
		}
		p.After = page[len(page)-1]
		c.command(queue.OrderCancel, page[0], p.After)
		c.command(queue.OrderForget, page[0], p.After) // including the task after which the next page begins
		c.claim(3)
		c.command(queue.OrderPause, ids[35])
	}
	if !slices.Equal(seen, ids) {
		c.Errorf("of %d tasks, the pages list: %v", len(ids), seen)
	}
}

func statsAddUp(c *trial) {
	for _, state := range queue.States() {
		c.addInState(state)
	}
	c.add(queue.Options{Queue: "other", Tier: stint.High})
	c.pass(time.Second)
	c.add(queue.Options{Queue: "other", Tier: stint.Low})
	if err := Check(c.Context(), c.Store); err != nil {
		c.Error(err)
	}
	stats := c.stats()
	other := stats.Queues["other"]
	if other.States[queue.Waiting] != 2 || other.Tiers[stint.High] != 1 || other.Tiers[stint.Low] != 1 {
		c.Errorf("the counts of the other queue are %+v", other)
	}
	if want := c.now.Add(-time.Second); !other.Oldest.Equal(want) {
		c.Errorf("the oldest task has waited since %v, want %v", other.Oldest, want)
	}
	c.claimWith(queue.Claim{Queue: "other", Max: 2})
	c.pass(time.Hour)
	c.maintain()
	stats = c.stats()
	if got, want := stats.Queues["other"].Ended, (queue.Ended{Lost: 2}); got != want {
		c.Errorf("the ends in the other queue are %+v, want %+v", got, want)
	}
	want := queue.Ended{Succeeded: 1, Failed: 1, Lost: 1, Dead: 1, Cancelled: 1}
	if got := stats.Queues[queue.DefaultQueue].Ended; got != want {
		c.Errorf("the ends are %+v, want %+v", got, want)
	}
}

func statsOfWorkers(c *trial) {
	w := queue.Worker{
		Name: "w", Host: "host", PID: 7, Kinds: map[string][]string{queue.DefaultQueue: {"a", "b"}}, Slots: 3, Since: c.now,
	}
	_, err := c.Store.Heartbeat(c.Context(), c.now, w, nil)
	c.ok("Heartbeat", err)
	c.pass(30 * time.Second)
	c.register("x")
	workers := func() []queue.Worker {
		c.Helper()
		stats := c.stats()
		return stats.Workers
	}
	byName := func(name string) func(queue.Worker) bool {
		return func(w queue.Worker) bool { return w.Name == name }
	}
	live := workers()
	i := slices.IndexFunc(live, byName("w"))
	if len(live) != 2 || i < 0 || live[i].Host != "host" || live[i].PID != 7 || live[i].Slots != 3 ||
		!slices.Equal(live[i].Kinds[queue.DefaultQueue], w.Kinds[queue.DefaultQueue]) {
		c.Errorf("the live workers are %+v", live)
	}
	c.pass(45 * time.Second)
	if live := workers(); slices.ContainsFunc(live, byName("w")) || !slices.ContainsFunc(live, byName("x")) {
		c.Errorf("75 s after the heartbeat of w and 45 s after that of x the live workers are %+v", live)
	}
}
