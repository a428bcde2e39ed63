package storetest

import (
	"slices"
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
		{"C4_Stats", Config{}, statsAddUp},
		{"C4_StatsOfWorkers", Config{}, statsOfWorkers},
		{"C4_Settings", Config{}, settingsAreKept},
		{"C4_SettingsOfAll", Config{}, settingsOfAll},
		{"C4_InvalidSettings", Config{}, invalidSettings},
	}
}

func filters(c *trial) {
	batch := c.ids.New(c.now)
	start := c.now
	specs := []queue.Spec{
		{Key: "k", Labels: map[string]string{"a": "1", "b": "2"}},
		{Queue: "other", Group: "g", Labels: map[string]string{"a": "1"}},
		{Kind: "kind", Batch: batch, Labels: map[string]string{"a": ""}},
		{Key: "k", Queue: "other"},
	}
	ids := make([]queue.ID, len(specs))
	for i, s := range specs {
		ids[i] = c.add(s)
		c.pass(time.Second)
	}
	failed := c.claimed(queue.Claim{Worker: "w", Max: 1}).Tasks[0]
	c.fails(failed, queue.Outcome{Error: "exit status 12", RunAt: c.now.Add(time.Hour)})
	c.claimed(queue.Claim{Worker: "w", Queue: "other", Max: 1})
	for _, test := range []struct {
		what string
		f    queue.Filter
		want []int
	}{
		{"nothing", queue.Filter{}, []int{0, 1, 2, 3}},
		{"ids", queue.Filter{IDs: []queue.ID{ids[3], ids[1], ids[3], c.ids.New(c.now)}}, []int{1, 3}},
		{"queue", queue.Filter{Queue: "other"}, []int{1, 3}},
		{"queue that there is not", queue.Filter{Queue: "others"}, nil},
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
		{"label that none has", queue.Filter{Labels: map[string]string{"c": ""}}, nil},
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
			c.Errorf("by %s, %d tasks are found, want %d:\n%v, want\n%v", test.what, len(got), len(want), got, want)
		}
	}
}

func findByState(c *trial) {
	ids := make(map[queue.State]queue.ID)
	for _, state := range queue.States() {
		ids[state] = c.inState(state)
	}
	for state, id := range ids {
		found := c.find(queue.Filter{States: []queue.State{state}})
		if !slices.Contains(idsOf(found), id) {
			c.Errorf("the task that is %s is not among the %d of that state", state, len(found))
		}
	}
}

func (c *trial) page(f queue.Filter, p queue.Page) []queue.ID {
	c.Helper()
	tasks, err := c.Store.Find(c.Context(), f, p)
	c.ok("Find", err)
	return idsOf(tasks)
}

func pages(c *trial) {
	ids := c.several(250, queue.Spec{})
	if got := c.page(queue.Filter{}, queue.Page{}); !slices.Equal(got, ids[:100]) {
		c.Errorf("a page of no size has %d tasks", len(got))
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
			c.Errorf("the newest first: %t; %d tasks are found in a wrong order, or not all of %d", newest, len(got), len(want))
		}
	}
	some := queue.Filter{IDs: ids[10:20]}
	if got := c.page(some, queue.Page{Newest: true, Limit: 3}); len(got) != 3 || got[0] != ids[19] {
		c.Errorf("the newest 3 of some are %v", got)
	}
	if got := c.page(queue.Filter{}, queue.Page{After: ids[249]}); len(got) != 0 {
		c.Errorf("behind the last one there are %v", got)
	}
}

// pagesUnderChanges shows that who pages through tasks meets each that stays
// exactly once, whatever happens to others meanwhile.
func pagesUnderChanges(c *trial) {
	ids := c.several(40, queue.Spec{})
	var seen []queue.ID
	p := queue.Page{Limit: 10}
	for {
		page := c.page(queue.Filter{}, p)
		seen = append(seen, page...)
		if len(page) < p.Limit {
			break
		}
		p.After = page[len(page)-1]
		c.command(queue.OnCancel, page[0], p.After)
		c.command(queue.OnForget, page[0], p.After) // also the one behind which it goes on
		c.claim(3)
		c.command(queue.OnPause, ids[35])
	}
	if !slices.Equal(seen, ids) {
		c.Errorf("of %d tasks, these are seen: %v", len(ids), seen)
	}
}

func statsAddUp(c *trial) {
	for _, state := range queue.States() {
		c.inState(state)
	}
	c.add(queue.Spec{Queue: "other", Tier: stint.High})
	c.pass(time.Second)
	c.add(queue.Spec{Queue: "other", Tier: stint.Low})
	if err := Check(c.Context(), c.Store); err != nil {
		c.Error(err)
	}
	stats, err := c.Store.Stats(c.Context(), c.now)
	c.ok("Stats", err)
	other := stats.Queues["other"]
	if other.States[queue.Waiting] != 2 || other.Tiers[stint.High] != 1 || other.Tiers[stint.Low] != 1 {
		c.Errorf("of the other queue it counts %+v", other)
	}
	if want := c.now.Add(-time.Second); !other.Oldest.Equal(want) {
		c.Errorf("the oldest waits since %v, want %v", other.Oldest, want)
	}
	c.claimed(queue.Claim{Queue: "other", Max: 2})
	c.pass(time.Hour)
	c.tend()
	stats, err = c.Store.Stats(c.Context(), c.now)
	c.ok("Stats", err)
	if got, want := stats.Queues["other"].Ended, (queue.Ended{Lost: 2}); got != want {
		c.Errorf("of the other queue has ended %+v, want %+v", got, want)
	}
	want := queue.Ended{Succeeded: 1, Failed: 1, Lost: 1, Dead: 1, Cancelled: 1}
	if got := stats.Queues[defaultQueue].Ended; got != want {
		c.Errorf("there has ended %+v, want %+v", got, want)
	}
}

func statsOfWorkers(c *trial) {
	w := queue.Worker{
		Name: "w", Host: "host", PID: 7, Kinds: map[string][]string{defaultQueue: {"a", "b"}}, Slots: 3, Since: c.now,
	}
	_, err := c.Store.Beat(c.Context(), c.now, w, nil)
	c.ok("Beat", err)
	c.pass(30 * time.Second)
	c.hear("x")
	workers := func() []queue.Worker {
		c.Helper()
		stats, err := c.Store.Stats(c.Context(), c.now)
		c.ok("Stats", err)
		return stats.Workers
	}
	byName := func(name string) func(queue.Worker) bool {
		return func(w queue.Worker) bool { return w.Name == name }
	}
	live := workers()
	i := slices.IndexFunc(live, byName("w"))
	if len(live) != 2 || i < 0 || live[i].Host != "host" || live[i].PID != 7 || live[i].Slots != 3 ||
		!slices.Equal(live[i].Kinds[defaultQueue], w.Kinds[defaultQueue]) {
		c.Errorf("the live workers are %+v", live)
	}
	c.pass(45 * time.Second)
	if live := workers(); slices.ContainsFunc(live, byName("w")) || !slices.ContainsFunc(live, byName("x")) {
		c.Errorf("75 s after one beat and 45 s after another the live workers are %+v", live)
	}
}

func settingsAreKept(c *trial) {
	want := queue.Settings{
		Max: 5, Caps: stint.Caps{Low: 2}, PerKey: 3, Rate: queue.Rate{PerSecond: 0.5, Burst: 2},
		KeyRate: queue.Rate{PerSecond: 7}, Pending: 9, Keep: queue.Retention{Age: time.Hour, Count: 4},
		KeepDead: queue.Retention{Age: time.Minute, Count: 3},
	}
	c.configure(want)
	pause := &queue.Pause{By: "somebody", Reason: "because"}
	c.pause("", pause)
	c.ok("Configure", c.Store.Configure(c.Context(), c.now, "", queue.Settings{Max: 2, Paused: &queue.Pause{By: "no"}}))
	all, err := c.Store.Settings(c.Context())
	c.ok("Settings", err)
	if got := all[defaultQueue]; got != want { // as it was set, without what is set for all
		c.Errorf("the settings are %+v, want %+v", got, want)
	}
	got := all[""]
	if got.Paused == nil || got.Max != 2 || got.Paused.By != pause.By || got.Paused.Reason != pause.Reason ||
		!got.Paused.Since.Equal(c.now) {
		c.Errorf("the settings of all are %+v", got)
	}
	since := c.now.Add(-time.Hour)
	c.pause("", &queue.Pause{By: "another", Since: since})
	all, err = c.Store.Settings(c.Context())
	c.ok("Settings", err)
	if got := all[""]; got.Paused == nil || got.Max != 2 || got.Paused.By != "another" || !got.Paused.Since.Equal(since) {
		c.Errorf("paused by another, the settings of all are %+v", got)
	}
	c.pause("", nil)
	all, err = c.Store.Settings(c.Context())
	if c.ok("Settings", err); all[""] != (queue.Settings{Max: 2}) {
		c.Errorf("after the pause the settings of all are %+v", all[""])
	}
	c.configure(queue.Settings{}) // takes all of them back
	all, err = c.Store.Settings(c.Context())
	if c.ok("Settings", err); all[defaultQueue] != (queue.Settings{}) {
		c.Errorf("the settings are %+v, want none", all[defaultQueue])
	}
	c.ok("Configure", c.Store.Configure(c.Context(), c.now, "", queue.Settings{}))
}

// settingsOfAll shows that a queue goes without what is set for all only where it
// has a setting of its own.
func settingsOfAll(c *trial) {
	all := queue.Settings{Max: 2, PerKey: 1, Keep: queue.Retention{Age: time.Second}}
	c.ok("Configure", c.Store.Configure(c.Context(), c.now, "", all))
	c.configure(queue.Settings{Max: 3})
	for _, name := range []string{defaultQueue, "other"} {
		c.submit(queue.Spec{Queue: name, Key: "k"}, queue.Spec{Queue: name, Key: "k"}, queue.Spec{Queue: name, Key: "l"},
			queue.Spec{Queue: name, Key: "m"}, queue.Spec{Queue: name, Key: "n"})
	}
	mine, others := c.claim(9), c.claimed(queue.Claim{Queue: "other", Max: 9}).Tasks
	if len(mine) != 3 || len(others) != 2 { // and none of them has two of key k
		c.Errorf("with 3 of its own one queue starts %d, with the 2 of all another %d", len(mine), len(others))
	}
	c.succeeds(mine[0])
	c.pass(time.Second)
	c.tend()
	c.gone(mine[0].ID)
}

func invalidSettings(c *trial) {
	for what, s := range map[string]queue.Settings{
		"max": {Max: -1}, "per key": {PerKey: -1}, "pending": {Pending: -1}, "rate": {Rate: queue.Rate{PerSecond: -1}},
		"burst": {Rate: queue.Rate{Burst: -1}}, "key rate": {KeyRate: queue.Rate{PerSecond: -1}},
		"age": {Keep: queue.Retention{Age: -1}}, "count": {KeepDead: queue.Retention{Count: -1}},
	} {
		c.refused(what, c.Store.Configure(c.Context(), c.now, defaultQueue, s), queue.ErrInvalid)
	}
	all, err := c.Store.Settings(c.Context())
	if c.ok("Settings", err); all[defaultQueue] != (queue.Settings{}) {
		c.Errorf("of what was refused is left %+v", all)
	}
}
