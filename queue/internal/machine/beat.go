package machine

import (
	"context"
	"errors"
	"time"

	"github.com/stintgo/stint/queue"
)

// Beat is as [queue.Store] says.
func (m *Machine) Beat(ctx context.Context, now time.Time, w queue.Worker, beats []queue.Beat) ([]queue.Answer, error) {
	if err := errors.Join(checkName("worker", w.Name), w.Validate()); err != nil {
		return nil, err
	}
	begin := m.steps.begin
	for i := range beats {
		if n := len(beats[i].Checkpoint); n > m.cfg.MaxCheckpoint {
			return nil, tooLarge("checkpoint", n, m.cfg.MaxCheckpoint)
		}
		if beats[i].Checkpoint != nil {
			begin = m.steps.beginChange // it is sent again and again, and would fill the memory
		}
	}
	if err := begin(ctx, now); err != nil {
		return nil, err
	}
	begun := m.journal.mark()
	m.workerSet.heard(w)
	answers := make([]queue.Answer, len(beats))
	for i := range beats {
		answers[i] = m.attempts.beat(&beats[i])
	}
	if m.journal.mark() == begun && m.steps.opened == 0 {
		// Leases are in memory. To wait for what others have written would end those of
		// handlers that do well while a disk is full. The first call alone waits, for the
		// times that it has corrected.
		m.steps.mu.Unlock()
		return answers, nil
	}
	if err := m.steps.end(ctx); err != nil {
		return nil, err
	}
	return answers, nil
}
