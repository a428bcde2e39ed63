package machine

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// worker is one who has been heard of.
type worker struct {
	queue.Worker
	seen int64
}

// workerLives is how long a worker counts as alive that is not heard of.
const workerLives = time.Minute

// Beat is as [queue.Store] says.
func (m *Machine) Beat(_ context.Context, now time.Time, w queue.Worker, beats []queue.Beat) ([]queue.Answer, error) {
	if w.Name == "" {
		return nil, fmt.Errorf("%w: a worker needs a name", queue.ErrInvalid)
	}
	for i := range beats {
		if n := len(beats[i].Checkpoint); n > m.cfg.MaxCheckpoint {
			return nil, tooLarge("checkpoint", n, m.cfg.MaxCheckpoint)
		}
	}
	if err := m.begin(now); err != nil {
		return nil, err
	}
	w.Kinds = maps.Clone(w.Kinds)
	for name, kinds := range w.Kinds {
		w.Kinds[name] = slices.Clone(kinds)
	}
	m.workers[w.Name] = &worker{w, m.now}
	for name, kinds := range w.Kinds {
		for _, kind := range kinds {
			m.line(name).seen[kind] = queue.Seen{Worker: w.Name, At: m.time()}
		}
	}
	answers := make([]queue.Answer, len(beats))
	for i := range beats {
		answers[i] = m.beat(&beats[i])
	}
	if err := m.end(); err != nil {
		return nil, err
	}
	return answers, nil
}

func (m *Machine) beat(b *queue.Beat) queue.Answer {
	t := m.tasks[b.ID]
	if t == nil || t.leased() == nil || t.lease.row.Lease.Token != b.Token {
		return queue.Answer{Order: queue.OnLost}
	}
	held := t.lease
	held.until = max(held.until, m.after(b.Lease))
	held.row.Lease.Until = timeOf(held.until)
	m.due.set(&t.due, held.until)
	if b.Progress != (queue.Progress{}) {
		held.row.Progress = b.Progress
	}
	if b.Checkpoint != nil {
		held.row.Checkpoint = bytes.Clone(b.Checkpoint)
		m.write(t, &held.row)
	}
	return queue.Answer{Order: held.order, Reason: held.reason}
}
