package reference

import (
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// counter counts tasks, by queue and state.
type counter struct {
	finder
	ended map[string]*queue.Ended
}

func (c counter) stats(now time.Time) queue.Stats {
	stats := queue.Stats{Queues: make(map[string]queue.Counts), Total: c.total()}
	for name, ended := range c.ended {
		keys := make(map[string]int)
		for key, own := range c.Settings.keysWithLimits(name) {
			if n := len(c.Tasks.running(name, &key)); n > 0 || own {
				keys[key] = n
			}
		}
		stats.Queues[name] = queue.Counts{
			States: make(map[queue.State]int), Tiers: make(map[stint.Priority]int), Ended: *ended,
			Limits: c.Settings.layer(name), Keys: keys,
		}
	}
	for _, t := range c.Tasks.all {
		v, of := c.view(now, t), stats.Queues[t.Queue]
		of.States[v.State]++
		if v.State == queue.Waiting || v.State == queue.Held {
			of.Tiers[v.Tier]++
		}
		if v.State == queue.Waiting && (of.Oldest.IsZero() || v.Changed.Before(of.Oldest)) {
			of.Oldest = v.Changed
		}
		stats.Queues[t.Queue] = of
	}
	return stats
}

// total counts what runs in all queues together, with the limits that concern it.
func (c counter) total() queue.Total {
	t := queue.Total{Running: len(c.Tasks.running("", nil)), Keys: make(map[string]int)}
	for _, f := range []queue.Field{queue.FieldTotal, queue.FieldTotalPerKey} {
		if v, set := c.Settings.value("", "", f); set {
			t.Limits.Copy(f, &v.Settings)
			if t.Limits.From == nil {
				t.Limits.From = make(map[queue.Field]queue.Origin)
			}
			t.Limits.From[f] = v.Origin
		}
	}
	for key := range c.Settings.keysWithTotals() {
		t.Keys[key] = len(c.Tasks.running("", &key))
	}
	return t
}
