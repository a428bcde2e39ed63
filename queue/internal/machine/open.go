package machine

import (
	"fmt"

	"github.com/stintgo/stint/queue/internal/record"
)

// Open returns a machine on rows, which it closes when it is closed. It reads
// all rows.
func Open(rows Rows, cfg Config) (*Machine, error) {
	m := &Machine{
		cfg:      cfg.withDefaults(),
		journal:  newJournal(rows, cfg.Keep),
		tasks:    newTasks(),
		counters: newCounters(cfg.Epoch),
	}
	m.wire()
	for _, load := range []func() error{
		m.settings.load, m.scheduleSet.load, m.uniqueNames.load, m.cascades.load, m.loader.tasksOf, m.fingerprints.load,
	} {
		if err := load(); err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
	}
	if err := m.journal.failed(); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	m.steps.mu.Lock()
	return m, m.steps.endAt(nil, nil)
}

// suspectedHead is suspected for a row of which the head has been read: the rest
// tells how many crashes are too many.
func suspectedHead(h *record.Head, value []byte) (bool, error) {
	if h.Crashes == 0 {
		return false, nil
	}
	row, err := record.Decode(value)
	return suspected(&row), err
}

func joins(h *record.Head) bool {
	return h.Group != "" || !h.Batch.IsZero() || len(h.After) > 0 || len(h.AfterAny) > 0 ||
		!h.AfterBatch.IsZero()
}
