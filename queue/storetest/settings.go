package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func settingsCases() []testCase {
	return []testCase{
		{"C4_Settings", Config{}, settingsAreKept},
		{"C4_SettingsOfAll", Config{}, settingsOfAll},
		{"C4_InvalidSettings", Config{}, invalidSettings},
		{"C4_SettingsChangeByField", Config{}, settingsChangeByField},
		{"C4_OperatorsSettingsWin", Config{}, operatorsWin},
		{"C4_OperatorLiftsALimit", Config{}, operatorLiftsALimit},
		{"C4_SettingsHaveVersions", Config{}, settingsHaveVersions},
		{"C4_SettingsNameTheirOrigin", Config{}, settingsNameOrigin},
		{"C4_SettingsOutliveTheStore", Config{}, settingsOutliveTheStore},
		{"C12_LimitOfOneKey", Config{}, limitOfOneKey},
		{"C12_RateOfOneKey", Config{}, rateOfOneKey},
	}
}

func settingsAreKept(c *trial) {
	want := queue.Settings{
		Max: 5, Caps: stint.Caps{Low: 2}, PerKey: 3, Rate: queue.Rate{PerSecond: 0.5, Burst: 2},
		KeyRate: queue.Rate{PerSecond: 7}, Pending: 9, Keep: queue.Retention{Age: time.Hour, Count: 4},
		KeepDead: queue.Retention{Age: time.Minute, Count: 3},
	}
	c.configure(want)
	pause := &queue.Pause{By: operator, Reason: "because"}
	c.pause("", pause)
	c.configureQueue("", queue.Settings{Max: 2})
	if got := c.settings(queue.DefaultQueue).Program.Settings; got != want { // without the defaults of all queues
		c.Errorf("the settings are %+v, want %+v", got, want)
	}
	got := c.settings("")
	if got.Paused == nil || got.Program.Max != 2 || got.Paused.By != pause.By || got.Paused.Reason != pause.Reason ||
		!got.Paused.Since.Equal(c.now) {
		c.Errorf("the settings of all queues are %+v", got)
	}
	since := c.now.Add(-time.Hour)
	c.pause("", &queue.Pause{By: "another", Since: since})
	got = c.settings("")
	if got.Paused == nil || got.Program.Max != 2 || got.Paused.By != "another" || !got.Paused.Since.Equal(since) {
		c.Errorf("after a second pause the settings of all queues are %+v", got)
	}
	c.pause("", nil)
	if got := c.settings(""); got.Program.Settings != (queue.Settings{Max: 2}) || got.Paused != nil {
		c.Errorf("after the pause the settings of all queues are %+v", got)
	}
	c.configure(queue.Settings{}) // unsets all fields
	if got := c.settings(queue.DefaultQueue); got.Program.Settings != (queue.Settings{}) {
		c.Errorf("the settings are %+v, want none", got)
	}
	c.configureQueue("", queue.Settings{})
}

// settingsOfAll shows that the defaults of all queues hold for each field that a queue has
// not set.
func settingsOfAll(c *trial) {
	c.configureQueue("", queue.Settings{Max: 2, PerKey: 1, Keep: queue.Retention{Age: time.Second}})
	c.configure(queue.Settings{Max: 3})
	for _, name := range []string{queue.DefaultQueue, "other"} {
		for _, key := range []string{"k", "k", "l", "m", "n"} {
			c.add(queue.Options{Queue: name, Key: key})
		}
	}
	mine, others := c.claim(9), c.claimWith(queue.Claim{Queue: "other", Max: 9}).Tasks
	if len(mine) != 3 || len(others) != 2 { // key k has one slot in each
		c.Errorf("a queue with Max 3 starts %d tasks, and one with the default of 2 starts %d", len(mine), len(others))
	}
	c.succeeds(mine[0])
	c.pass(time.Second)
	c.maintain()
	c.gone(mine[0].ID)
}

func invalidSettings(c *trial) {
	for what, change := range map[string]queue.Change{
		"max":           {Set: queue.Settings{Max: -1}},
		"per key":       {Set: queue.Settings{PerKey: -1}},
		"pending":       {Set: queue.Settings{Pending: -1}},
		"rate":          {Set: queue.Settings{Rate: queue.Rate{PerSecond: -1}}},
		"burst":         {Set: queue.Settings{Rate: queue.Rate{PerSecond: 1, Burst: -1}}},
		"burst alone":   {Set: queue.Settings{Rate: queue.Rate{Burst: 1}}},
		"key rate":      {Set: queue.Settings{KeyRate: queue.Rate{PerSecond: -1}}},
		"age":           {Set: queue.Settings{Keep: queue.Retention{Age: -1}}},
		"count":         {Set: queue.Settings{KeepDead: queue.Retention{Count: -1}}},
		"total":         {Set: queue.Settings{Total: 1}}, // holds for all queues only
		"unknown":       {Unlimited: []queue.Field{"speed"}},
		"unset unknown": {Unset: []queue.Field{"speed"}},
		"kept for ever": {Unlimited: []queue.Field{queue.FieldKeep}},
		"contradiction": {Set: queue.Settings{Max: 1}, Unset: []queue.Field{queue.FieldMax}},
		"another one":   {Set: queue.Settings{Max: 1}, Unlimited: []queue.Field{queue.FieldMax}},
		"caps of a key": {Key: "k", Set: queue.Settings{Caps: stint.Caps{Low: 1}}},
		"rate of a key": {Key: "k", Set: queue.Settings{KeyRate: queue.Rate{PerSecond: 1}}},
		"long key":      {Key: strings.Repeat("k", 201), Set: queue.Settings{Max: 1}},
		"long by":       {By: strings.Repeat("b", 201), Set: queue.Settings{Max: 1}},
	} {
		c.refused(what, c.Store.Configure(c.Context(), c.now, queue.DefaultQueue, change), queue.ErrInvalid)
	}
	for what, pause := range map[string]*queue.Pause{
		"a pause with a long by":     {By: strings.Repeat("b", 201)},
		"a pause with a long reason": {Reason: strings.Repeat("r", 4097)},
	} {
		c.refused(what, c.Store.PauseQueue(c.Context(), c.now, queue.DefaultQueue, pause), queue.ErrInvalid)
	}
	got := c.settings(queue.DefaultQueue)
	if got.Program.Settings != (queue.Settings{}) || len(got.Keys) > 0 || got.Paused != nil {
		c.Errorf("refused changes have left %+v", got)
	}
}

// settingsChangeByField shows that a change keeps all fields that it does not name.
func settingsChangeByField(c *trial) {
	c.change(queue.DefaultQueue, queue.Change{Set: queue.Settings{PerKey: 3, Rate: queue.Rate{PerSecond: 50}}})
	c.change(queue.DefaultQueue, queue.Change{Set: queue.Settings{Max: 4}})
	want := queue.Settings{Max: 4, PerKey: 3, Rate: queue.Rate{PerSecond: 50}}
	if got := c.settings(queue.DefaultQueue).Program.Settings; got != want {
		c.Errorf("after Max has been set the settings are %+v, want %+v", got, want)
	}
	c.change(queue.DefaultQueue, queue.Change{Unset: []queue.Field{queue.FieldPerKey, queue.FieldPending}})
	want.PerKey = 0
	if got := c.settings(queue.DefaultQueue); got.Program.Settings != want || len(got.Program.From) != 2 {
		c.Errorf("after PerKey has been unset the settings are %+v, want %+v", got.Program, want)
	}
}

// operatorsWin shows that a field set by an operator is in force until the operator unsets
// it, whatever programs set, and that other fields are not affected.
func operatorsWin(c *trial) {
	declare := func() { c.change(queue.DefaultQueue, queue.Change{Set: queue.Settings{Max: 3, PerKey: 1}}) }
	declare()
	c.configureAsOperator(queue.Change{Set: queue.Settings{Max: 1}})
	declare() // the program starts again
	c.change(queue.DefaultQueue, queue.Change{Set: queue.Settings{Max: 5}})
	for range 6 {
		c.submit(queue.Options{}, queue.Options{Key: "k"})
	}
	if n := len(c.claim(9)); n != 1 {
		c.Fatalf("%d tasks run, want 1, the operator's limit", n)
	}
	in := c.settings(queue.DefaultQueue).InForce
	if in.Max != 1 || in.PerKey != 1 || !in.From[queue.FieldMax].Operator || in.From[queue.FieldPerKey].Operator {
		c.Errorf("the settings in force are %+v", in)
	}
	c.configureAsOperator(queue.Change{Unset: []queue.Field{queue.FieldMax}})
	running := c.claim(9)
	if n := len(running); n != 4 {
		c.Errorf("after the operator has unset the limit, %d more tasks run, want 4: the program's limit is 5", n)
	}
	if got := c.settings(queue.DefaultQueue); got.Operator.From != nil || got.InForce.Max != 5 {
		c.Errorf("the settings are %+v", got)
	}
}

// operatorLiftsALimit shows that an operator can set a field to unlimited.
func operatorLiftsALimit(c *trial) {
	c.configureQueue("", queue.Settings{PerKey: 1})
	c.configure(queue.Settings{Max: 1})
	c.configureAsOperator(queue.Change{Unlimited: []queue.Field{queue.FieldMax, queue.FieldPerKey}})
	c.several(4, queue.Options{Key: "k"})
	if n := len(c.claim(9)); n != 4 {
		c.Errorf("%d tasks run, want all 4", n)
	}
	if in := c.settings(queue.DefaultQueue).InForce; in.Max != 0 || !in.From[queue.FieldMax].Operator {
		c.Errorf("the settings in force are %+v", in)
	}
}

// settingsHaveVersions shows that of two changes with the same version the second is
// refused, and that a change may be repeated.
func settingsHaveVersions(c *trial) {
	c.configure(queue.Settings{Max: 1})
	read := c.settings(queue.DefaultQueue).Version
	first := queue.Change{Set: queue.Settings{Max: 2}, Version: read}
	c.change(queue.DefaultQueue, first)
	second := queue.Change{Set: queue.Settings{Max: 3}, Version: read}
	c.refused("the second", c.Store.Configure(c.Context(), c.now, queue.DefaultQueue, second), queue.ErrChanged)
	c.change(queue.DefaultQueue, first) // repeats a call whose answer was lost
	if got := c.settings(queue.DefaultQueue); got.Program.Max != 2 || got.Version <= read {
		c.Errorf("the settings are %+v", got)
	}
	second.Version = c.settings(queue.DefaultQueue).Version
	c.change(queue.DefaultQueue, second)
	c.configure(queue.Settings{}) // removes the settings; their versions are not used again
	c.configure(queue.Settings{Max: 1})
	c.refused("after a gap", c.Store.Configure(c.Context(), c.now, queue.DefaultQueue, queue.Change{
		Set: queue.Settings{Max: 7}, Version: read,
	}), queue.ErrChanged)
}

// settingsNameOrigin shows that each field in force has the By and the time of the change
// that set it.
func settingsNameOrigin(c *trial) {
	c.register(worker, kind)
	start := c.now
	declare := queue.Change{By: "importer", Set: queue.Settings{Max: 1, Pending: 9}}
	c.change(queue.DefaultQueue, declare)
	c.pass(time.Minute)
	c.change(queue.DefaultQueue, declare) // changes nothing
	c.configureAsOperator(queue.Change{Set: queue.Settings{Pending: 20}})
	c.change("", queue.Change{By: "importer", Set: queue.Settings{PerKey: 2}})
	want := map[queue.Field]queue.Origin{
		queue.FieldMax:     {By: "importer", At: start},
		queue.FieldPending: {By: "ann", At: c.now, Operator: true},
		queue.FieldPerKey:  {By: "importer", At: c.now, Default: true},
	}
	c.equal("the origins", c.settings(queue.DefaultQueue).InForce.From, want)
	ids := c.several(2, queue.Options{})
	c.claimOne()
	if r := c.anyReason(ids[1], stint.CodeMax); r.SetBy.By != "importer" || !r.SetBy.At.Equal(start) || r.SetBy.Operator {
		c.Errorf("the reason is %+v", r)
	}
	stats := c.stats()
	c.equal("the limits", stats.Queues[queue.DefaultQueue].Limits, queue.Layer{
		Settings: queue.Settings{Max: 1, Pending: 20, PerKey: 2}, From: want,
	})
}

func settingsOutliveTheStore(c *trial) {
	c.configureQueue("", queue.Settings{PerKey: 2})
	c.configure(queue.Settings{Max: 3})
	c.configureAsOperator(queue.Change{Set: queue.Settings{Max: 2}, Unlimited: []queue.Field{queue.FieldPerKey}})
	c.configureAsOperator(queue.Change{Key: "k", Set: queue.Settings{Max: 1}})
	before := c.allSettings()
	if !c.crash() {
		return
	}
	after := c.allSettings()
	c.equal("the settings", after, before)
	c.several(3, queue.Options{Key: "k"})
	if n := len(c.claim(9)); n != 1 {
		c.Errorf("%d tasks of the key run, want 1", n)
	}
	c.change(queue.DefaultQueue, queue.Change{Set: queue.Settings{Max: 4}})
	for name, is := range before {
		if got := c.settings(queue.DefaultQueue).Version; got <= is.Version {
			c.Errorf("version %d comes after version %d of %q", got, is.Version, name)
		}
	}
}

// limitOfOneKey shows that a key can have a limit of its own, above or below the limit of
// all keys.
func limitOfOneKey(c *trial) {
	c.register(worker, kind)
	c.configure(queue.Settings{PerKey: 2})
	c.change(queue.DefaultQueue, queue.Change{Key: "small", Set: queue.Settings{Max: 1}})
	c.change("", queue.Change{Key: "large", Set: queue.Settings{Max: 3}})
	c.change(queue.DefaultQueue, queue.Change{Key: "free", Unlimited: []queue.Field{queue.FieldMax}})
	ids := make(map[string][]queue.ID)
	for _, key := range []string{"small", "large", "free", "other"} {
		ids[key] = c.several(5, queue.Options{Key: key})
	}
	runs := func() string {
		running := make(map[string]int)
		for _, t := range c.find(queue.Filter{States: []queue.State{queue.Running}}) {
			running[t.Key]++
		}
		return fmt.Sprint(running)
	}
	c.claim(50)
	if got, want := runs(), "map[free:5 large:3 other:2 small:1]"; got != want {
		c.Errorf("the running tasks by key are %s, want %s", got, want)
	}
	c.heldBy(ids["small"][1], queue.HoldKey)
	if r := c.firstReason(ids["small"][1], stint.Code(queue.HoldKey)); r.Limit != 1 || r.Running != 1 || r.Key != "small" {
		c.Errorf("the reason is %+v", r)
	}
	stats := c.stats()
	c.equal("the keys", stats.Queues[queue.DefaultQueue].Keys, map[string]int{"free": 5, "large": 3, "small": 1})
	c.change("", queue.Change{Key: "idle", Set: queue.Settings{Max: 3}}) // no task of it runs
	c.change(queue.DefaultQueue, queue.Change{Key: "own", Set: queue.Settings{Max: 3}})
	c.equal("the keys", c.stats().Queues[queue.DefaultQueue].Keys,
		map[string]int{"free": 5, "large": 3, "small": 1, "own": 0})
	c.change(queue.DefaultQueue, queue.Change{Key: "small", Unset: queue.Fields()})
	c.claim(50)
	if got, want := runs(), "map[free:5 large:3 other:2 small:2]"; got != want {
		c.Errorf("after a limit was unset, the running tasks by key are %s, want %s", got, want)
	}
}

// rateOfOneKey shows that a key can have a rate of its own.
func rateOfOneKey(c *trial) {
	c.configure(queue.Settings{KeyRate: queue.Rate{PerSecond: 1}})
	c.change(queue.DefaultQueue, queue.Change{Key: "fast", Set: queue.Settings{Rate: queue.Rate{PerSecond: 1, Burst: 3}}})
	c.change(queue.DefaultQueue, queue.Change{Key: "free", Unlimited: []queue.Field{queue.FieldRate}})
	for _, key := range []string{"slow", "fast", "free"} {
		c.several(5, queue.Options{Key: key})
	}
	started := make(map[string]int)
	for _, t := range c.claim(50) {
		started[t.Key]++
	}
	if got, want := fmt.Sprint(started), "map[fast:3 free:5 slow:1]"; got != want {
		c.Errorf("the started tasks by key are %s, want %s", got, want)
	}
	c.change("", queue.Change{Key: "slow", Set: queue.Settings{Rate: queue.Rate{PerSecond: 1, Burst: 2}}})
	for _, t := range c.claim(50) {
		started[t.Key]++
	}
	if got, want := fmt.Sprint(started), "map[fast:3 free:5 slow:3]"; got != want {
		c.Errorf("the rate of one key was changed: the started tasks by key are %s, want %s", got, want)
	}
	c.pass(time.Second)
	if got := c.claim(50); len(got) != 2 || !slices.ContainsFunc(got, func(t queue.Task) bool { return t.Key == "fast" }) {
		c.Errorf("a second later %d tasks start, want one of each key with a rate", len(got))
	}
}
