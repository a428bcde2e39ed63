package storetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func (n *naive) Find(_ context.Context, f queue.Filter, p queue.Page) (found []queue.Task, err error) {
	end, err := n.begin(time.Time{})
	if err != nil {
		return nil, err
	}
	defer end()
	rows := n.matching(f)
	if p.Newest {
		slices.Reverse(rows)
	}
	const page = 100
	for _, r := range rows {
		order := compareIDs(r.ID, p.After)
		behind := p.After.IsZero() || order > 0 && !p.Newest || order < 0 && p.Newest
		if behind && len(found) < cmp.Or(p.Limit, page) {
			found = append(found, n.view(r))
		}
	}
	return found, nil
}

// matching are the tasks that a filter finds, in the order of their IDs.
func (n *naive) matching(f queue.Filter) (found []*row) {
	for _, r := range n.rows {
		if matches(f, n.view(r)) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *row) int { return compareIDs(a.ID, b.ID) })
	return found
}

func matches(f queue.Filter, t queue.Task) bool {
	for name, value := range f.Labels {
		if got, ok := t.Labels[name]; !ok || got != value {
			return false
		}
	}
	return (len(f.IDs) == 0 || slices.Contains(f.IDs, t.ID)) &&
		(f.Queue == "" || f.Queue == t.Queue) &&
		(f.Kind == "" || f.Kind == t.Kind) &&
		(f.Key == "" || f.Key == t.Key) &&
		(f.Group == "" || f.Group == t.Group) &&
		(f.Batch.IsZero() || f.Batch == t.Batch) &&
		(f.Worker == "" || f.Worker == t.Lease.Worker) &&
		(len(f.States) == 0 || slices.Contains(f.States, t.State)) &&
		strings.Contains(t.Error, f.Error) &&
		(f.From.IsZero() || !t.Submitted.Before(f.From)) &&
		(f.To.IsZero() || t.Submitted.Before(f.To))
}

func (n *naive) Stats(_ context.Context, now time.Time) (stats queue.Stats, err error) {
	end, err := n.begin(now)
	if err != nil {
		return stats, err
	}
	defer end()
	stats.Queues = make(map[string]queue.Counts)
	for name, q := range n.queues {
		stats.Queues[name] = queue.Counts{
			States: make(map[queue.State]int), Tiers: make(map[stint.Priority]int), Ended: q.ended,
		}
	}
	for _, r := range n.rows {
		t, c := n.view(r), stats.Queues[r.Queue]
		c.States[t.State]++
		if t.State == queue.Waiting || t.State == queue.Held {
			c.Tiers[t.Tier]++
		}
		if t.State == queue.Waiting && (c.Oldest.IsZero() || t.Changed.Before(c.Oldest)) {
			c.Oldest = t.Changed
		}
		stats.Queues[r.Queue] = c
	}
	for _, name := range slices.Sorted(maps.Keys(n.workers)) {
		if w := n.workers[name]; n.lives(w) {
			stats.Workers = append(stats.Workers, w.Worker)
		}
	}
	return stats, nil
}

// workerLives is how long a worker counts as alive that is not heard of.
const workerLives = time.Minute

func (n *naive) lives(w heard) bool { return n.now.Sub(w.at) < workerLives }

func (n *naive) Configure(_ context.Context, now time.Time, name string, s queue.Settings) error {
	for _, number := range []float64{
		float64(s.Max), float64(s.PerKey), float64(s.Pending), s.Rate.PerSecond, float64(s.Rate.Burst),
		s.KeyRate.PerSecond, float64(s.KeyRate.Burst), float64(s.Keep.Age), float64(s.Keep.Count),
		float64(s.KeepDead.Age), float64(s.KeepDead.Count),
	} {
		if !(number >= 0) { // also if it is not a number
			return fmt.Errorf("%w: a limit of %v", queue.ErrInvalid, number)
		}
	}
	end, err := n.begin(now)
	if err != nil {
		return err
	}
	defer end()
	s.Paused = n.settings[name].Paused
	n.settings[name] = s
	n.signal()
	return nil
}

func (n *naive) PauseQueue(_ context.Context, now time.Time, name string, p *queue.Pause) error {
	end, err := n.begin(now)
	if err != nil {
		return err
	}
	defer end()
	s := n.settings[name]
	if s.Paused = nil; p != nil {
		s.Paused = &queue.Pause{By: p.By, Reason: p.Reason, Since: p.Since}
		if p.Since.IsZero() {
			s.Paused.Since = n.now
		}
	}
	n.settings[name] = s
	n.signal()
	return nil
}

// inForce is what is set for a queue, and for all where it has nothing itself.
func (n *naive) inForce(name string) queue.Settings {
	s, all := n.settings[name], n.settings[""]
	return queue.Settings{
		Max: cmp.Or(s.Max, all.Max), Caps: cmp.Or(s.Caps, all.Caps), PerKey: cmp.Or(s.PerKey, all.PerKey),
		Rate: cmp.Or(s.Rate, all.Rate), KeyRate: cmp.Or(s.KeyRate, all.KeyRate), Pending: cmp.Or(s.Pending, all.Pending),
		Paused: cmp.Or(s.Paused, all.Paused),
		Keep:   orRetention(s.Keep, all.Keep), KeepDead: orRetention(s.KeepDead, all.KeepDead),
	}
}

func orRetention(r, all queue.Retention) queue.Retention {
	return queue.Retention{Age: cmp.Or(r.Age, all.Age), Count: cmp.Or(r.Count, all.Count)}
}

func (n *naive) Settings(context.Context) (map[string]queue.Settings, error) {
	end, err := n.begin(time.Time{})
	if err != nil {
		return nil, err
	}
	defer end()
	return maps.Clone(n.settings), nil
}
