package machine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// Explain is as [queue.Store] says.
func (m *Machine) Explain(_ context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	m.steps.mu.Lock()
	defer m.steps.mu.Unlock()
	if m.steps.closed {
		return nil, queue.ErrClosed
	}
	m.keyRates.unblock()
	return m.reasons.of(id, m.clock.latest(now))
}

// said is who said something and why, in one text.
func said(by, why string) string {
	switch {
	case by == "":
		return why
	case why == "":
		return by
	default:
		return by + ": " + why
	}
}

// busiest are the queues, at most ten, of which most tasks run that count.
func busiest(running map[string]int) map[string]int {
	const most = 10
	if len(running) <= most {
		return running
	}
	names := slices.SortedFunc(maps.Keys(running), func(a, b string) int {
		return cmp.Or(cmp.Compare(running[b], running[a]), cmp.Compare(a, b))
	})
	top := make(map[string]int, most)
	for _, name := range names[:most] {
		top[name] = running[name]
	}
	return top
}
