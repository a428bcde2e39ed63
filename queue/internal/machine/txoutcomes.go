package machine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// TxOutcomes is the outcomes of attempts that transactions of callers have written beside the
// machine: each is a row whose key is that of the attempt. Before the lease of an attempt ends
// for another reason, the store writes an empty row with the same key, a fence. It refuses a
// second row with a key, so the two exclude each other: the attempt has either the outcome of
// the transaction or the end that the machine decides. An outcome is removed in the step that
// ends the lease, and a fence in a later one. A TxOutcomes is safe for concurrent use.
type TxOutcomes struct {
	attempts  *attempts
	clock     *clock
	corrector *corrector
	journal   *journal.Journal
	scans     *scans
	states    *stateIndex
	steps     *steps
}

// NewTxOutcomes returns the outcomes beside a machine.
func NewTxOutcomes(m *Machine) *TxOutcomes {
	return &TxOutcomes{
		attempts: &m.attempts, clock: &m.clock, corrector: &m.corrector, journal: m.journal, scans: &m.scans,
		states: &m.states, steps: &m.steps,
	}
}

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
func readOutcome(value []byte) (*queue.Outcome, error) {
	const clock = 8 // bytes
	if len(value) < clock {
		return nil, fmt.Errorf("%w: the row of an outcome has %d bytes", queue.ErrInvalid, len(value))
	}
	var kept keptOutcome
	if err := json.Unmarshal(value[clock:], &kept); err != nil {
		return nil, fmt.Errorf("%w: the row of an outcome: %w", queue.ErrInvalid, err)
	}
	if kept.Kind == queue.OutcomeFailure || kept.Kind == queue.OutcomeSnooze {
		kept.RunAt = time.UnixMicro(int64(binary.BigEndian.Uint64(value))).Add(kept.Delay)
	}
	return &kept.Outcome, nil
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

// Keys returns the keys of up to limit rows of outcomes and fences behind a key, in ascending
// order; after "" those at the beginning.
func (o *TxOutcomes) Keys(after string, limit int) ([]string, error) {
	return firstKeys(o.journal, max(rowOutcome, after+"\x00"), limit)
}

// ErrNoOutcome is the answer of [TxOutcomes.Accept] for the key of a fence, or of a row that
// was removed: it was accepted already.
var ErrNoOutcome = errors.New("there is no outcome")

// Accept settles attempts as the rows of their outcomes say and removes the rows, in one
// step. It does so for the first of keys, at least for one, and returns an answer for each of
// these. Keys ascend. Fences are recorded as by [TxOutcomes.RecordFences].
//
// An answer is nil if the attempt has ended with the outcome. [queue.ErrStale] means that the lease
// had ended in another way; the row is removed nevertheless. [queue.ErrInvalid] means that the row
// cannot be decoded; it stays. If err is not nil, it is not known what has become of the outcomes.
func (o *TxOutcomes) Accept(ctx context.Context, now time.Time, keys []string) (answers []error, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	since := o.journal.Durable()
	values, err := o.journal.Stored().Read(keys[:min(len(keys), txRows)], txBytes)
	if err != nil {
		return nil, err
	}
	answers, outcomes := make([]error, len(values)), make([]*queue.Outcome, len(values))
	var fences []string
	found := false
	for i, value := range values {
		if len(value) > 0 {
			outcomes[i], answers[i] = readOutcome(value)
			found = found || answers[i] == nil
			continue
		}
		answers[i] = ErrNoOutcome
		if value != nil {
			fences = append(fences, keys[i])
		}
	}
	if found {
		var n int
		n, err = o.settle(ctx, now, keys, outcomes, answers, since)
		answers = answers[:n]
	}
	return answers, errors.Join(err, o.RecordFences(ctx, fences))
}

// settle is the step of Accept, for the outcomes that are not nil. They were read after the mark
// since was durable. It answers the first n, at least one: as many as a step may read and write.
func (o *TxOutcomes) settle(
	ctx context.Context, now time.Time, keys []string, outcomes []*queue.Outcome, answers []error, since uint64,
) (n int, err error) {
	if err := o.steps.begin(ctx, now); err != nil {
		return 0, err
	}
	for i, outcome := range outcomes {
		if i > 0 && o.scans.full() {
			break
		}
		n = i + 1
		if outcome == nil {
			continue
		}
		if o.journal.Changed(keys[i], since) { // another call has accepted it meanwhile
			answers[i] = ErrNoOutcome
			continue
		}
		answers[i] = o.attempts.end(outcome) // the limits were those of the transaction
		if answers[i] == nil || errors.Is(answers[i], queue.ErrStale) {
			o.journal.Set(keys[i], nil, false)
		}
		o.scans.advance()
	}
	return n, o.steps.end(ctx)
}

// RecordFences records that the rows have fences with these keys: no transaction settles the
// attempts any more. Fences of leases that have ended are removed. It does not move the clock.
func (o *TxOutcomes) RecordFences(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	if err := o.steps.begin(ctx, time.Time{}); err != nil {
		return err
	}
	for _, key := range keys {
		l, _ := outcomeOf(key)
		if t := o.attempts.running(l); t != nil {
			t.lease.fenced = true
		} else {
			o.journal.Set(key, nil, false)
		}
	}
	return o.steps.end(ctx)
}

// Runs reports whether a lease has not ended, and is not fenced.
func (o *TxOutcomes) Runs(l Lease) bool {
	if o.steps.lockOpen() != nil {
		return false
	}
	defer o.steps.mu.Unlock()
	t := o.attempts.running(l)
	return t != nil && !t.lease.fenced
}

// Expired returns up to limit leases that have expired at now, which Maintain ends when they
// have fences.
func (o *TxOutcomes) Expired(now time.Time, limit int) (expired []Lease) {
	if o.steps.lockOpen() != nil {
		return nil
	}
	defer o.steps.mu.Unlock()
	if o.corrector.opening != nil { // the first call extends leases
		return nil
	}
	o.states.leases.before(o.clock.latest(now), func(t *task) {
		if l := t.lease; l.remote && !l.fenced && len(expired) < limit {
			expired = append(expired, Lease{t.id, l.row.Lease.Token})
		}
	})
	return expired
}

// fencePause is how much later Maintain looks again at a lease that has expired and has no fence.
const fencePause = time.Second
