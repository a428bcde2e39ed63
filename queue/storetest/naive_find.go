package storetest

import (
	"cmp"
	"context"
	"encoding/hex"
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
		if behind && len(found) < cmp.Or(p.Limit, page) && !full(found, p.Bytes) {
			found = append(found, n.view(r))
		}
	}
	return found, nil
}

// full reports whether an answer has as many bytes as it may have. 0 is no limit.
func full(tasks []queue.Task, bytes int) bool {
	size := 0
	for i := range tasks {
		size += tasks[i].Size()
	}
	return bytes > 0 && size >= bytes
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
	return (f.IDs == nil || slices.Contains(f.IDs, t.ID)) &&
		strings.HasSuffix(hex.EncodeToString(t.ID[:]), f.Ending) &&
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
	stats.Queues, stats.Total = make(map[string]queue.Counts), n.totals()
	for name, q := range n.queues {
		stats.Queues[name] = queue.Counts{
			States: make(map[queue.State]int), Tiers: make(map[stint.Priority]int), Ended: q.ended,
			Limits: n.layer(name), Keys: n.keysWithLimits(name),
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
