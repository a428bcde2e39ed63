package machine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// An attempt can be settled by a transaction of a caller, beside the machine: the transaction
// writes the outcome as a row whose key is that of the attempt. Before the machine ends the
// lease of an attempt for another reason, it writes an empty row with the same key, a fence.
// The store refuses a second row with a key, so the two exclude each other: the attempt has
// either the outcome of the transaction or the end that the machine decides. An outcome is
// removed in the step that ends the lease, and a fence in a later one.

// Lease identifies an attempt.
type Lease struct {
	ID    queue.ID
	Token queue.Token
}

// OutcomeKey returns the key of the row of an attempt.
func OutcomeKey(l Lease) string {
	return string(binary.BigEndian.AppendUint64(append([]byte(rowOutcome), l.ID[:]...), uint64(l.Token)))
}

// outcomeOf returns the attempt of the key of an outcome.
func outcomeOf(key string) (l Lease, ok bool) {
	const token = 8 // bytes
	if len(key) != len(rowOutcome)+len(l.ID)+token {
		return l, false
	}
	copy(l.ID[:], key[len(rowOutcome):])
	l.Token = queue.Token(binary.BigEndian.Uint64([]byte(key[len(key)-token:])))
	return l, true
}

// keptOutcome is the value of the row of an outcome, after eight bytes with the time of the
// database server in microseconds since 1970, big-endian.
type keptOutcome struct {
	queue.Outcome
	Delay time.Duration `json:"delay_ns,omitempty"` // from that time to RunAt, which is zero
}

// OutcomeRow returns the key of the row of an outcome, and its value without the time of the
// server. now is the time by the clock that RunAt is of. The limits of sizes in bytes are 0
// for the default. Errors: [queue.ErrInvalid], [queue.ErrTooLarge].
func OutcomeRow(o queue.Outcome, now time.Time, maxResult, maxCheckpoint int) (key string, value []byte, err error) {
	limits := Config{MaxResult: maxResult, MaxCheckpoint: maxCheckpoint}.withDefaults()
	if o.Token == 0 || !o.InTx {
		return "", nil, fmt.Errorf("%w: the outcome is not that of a running attempt: use that of Attempt.Outcome",
			queue.ErrInvalid)
	}
	if err := (&attempts{cfg: &limits}).check(&o); err != nil {
		return "", nil, err
	}
	kept := keptOutcome{Outcome: o}
	if !o.RunAt.IsZero() {
		kept.Delay, kept.RunAt = o.RunAt.Sub(now), time.Time{}
	}
	value, err = json.Marshal(kept)
	return OutcomeKey(Lease{o.ID, o.Token}), value, err
}

// readOutcome decodes the value of the row of an outcome.
func readOutcome(value []byte) (o queue.Outcome, err error) {
	const clock = 8 // bytes
	if len(value) < clock {
		return o, fmt.Errorf("%w: the row of an outcome has %d bytes", queue.ErrInvalid, len(value))
	}
	var kept keptOutcome
	if err := json.Unmarshal(value[clock:], &kept); err != nil {
		return o, fmt.Errorf("%w: the row of an outcome: %w", queue.ErrInvalid, err)
	}
	if kept.Kind == queue.OutcomeFailure || kept.Kind == queue.OutcomeSnooze {
		kept.RunAt = time.UnixMicro(int64(binary.BigEndian.Uint64(value))).Add(kept.Delay)
	}
	return kept.Outcome, nil
}

// TaskKey returns the key of the row of a task.
func TaskKey(id queue.ID) string { return taskRow(&id) }

// MayRun reports whether the row of a task, nil if there is none, allows that the attempt
// with a token runs. A row shows the end of each attempt that has ended; that an attempt has
// begun need not be in the row.
func MayRun(row []byte, token queue.Token) (bool, error) {
	if row == nil {
		return false, nil
	}
	r, err := record.Decode(row)
	if err != nil {
		return false, err
	}
	return r.Lease.Token < token || r.Lease.Token == token && r.State == queue.Running, nil
}

// Outcomes returns the keys of up to limit rows of outcomes and fences.
func (m *Machine) Outcomes(limit int) (keys []string, err error) { return m.keys(rowOutcome, limit) }

// AcceptOutcome settles an attempt as the row of its outcome says and removes the row, in one
// step. If the row is a fence, it is [Machine.Fenced]. Errors: [queue.ErrStale] if the lease
// has ended in another way; the row is removed nevertheless.
func (m *Machine) AcceptOutcome(ctx context.Context, now time.Time, key string) error {
	value, err := m.journal.GetStored(key)
	switch {
	case err != nil || value == nil: // it was accepted
		return err
	case len(value) == 0:
		return m.Fenced(ctx, []string{key})
	}
	o, err := readOutcome(value)
	if err != nil {
		return err
	}
	if err := m.steps.begin(ctx, now); err != nil {
		return err
	}
	err = m.attempts.end(&o) // the limits were those of the transaction
	if err == nil || errors.Is(err, queue.ErrStale) {
		m.journal.Set(key, nil, false)
	}
	m.scans.advance()
	if syncErr := m.steps.end(ctx); syncErr != nil {
		return syncErr
	}
	return err
}

// Fenced records that the rows have fences with these keys: no transaction settles the
// attempts any more. Fences of leases that have ended are removed. It does not move the clock.
func (m *Machine) Fenced(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	if err := m.steps.begin(ctx, time.Time{}); err != nil {
		return err
	}
	for _, key := range keys {
		l, _ := outcomeOf(key)
		if t := m.attempts.running(l); t != nil {
			t.lease.fenced = true
		} else {
			m.journal.Set(key, nil, false)
		}
	}
	return m.steps.end(ctx)
}

// Runs reports whether a lease has not ended, and is not fenced.
func (m *Machine) Runs(l Lease) bool {
	if m.steps.lockOpen() != nil {
		return false
	}
	defer m.steps.mu.Unlock()
	t := m.attempts.running(l)
	return t != nil && !t.lease.fenced
}

// Lapsing returns leases whose time is over at now, up to limit, which Maintain ends when
// they have fences.
func (m *Machine) Lapsing(now time.Time, limit int) (over []Lease) {
	if m.steps.lockOpen() != nil {
		return nil
	}
	defer m.steps.mu.Unlock()
	if m.corrector.opening != nil { // the first call extends leases
		return nil
	}
	m.states.leases.before(m.clock.latest(now), func(t *task) {
		if l := t.lease; l.remote && !l.fenced && len(over) < limit {
			over = append(over, Lease{t.id, l.row.Lease.Token})
		}
	})
	return over
}

// fencePause is how much later Maintain looks again at a lease that is over and has no fence.
const fencePause = time.Second
