package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

const (
	// fenceWait is how long a fence waits for a transaction that settles the attempt, before
	// the lease of the attempt is lost; settleWait, when its handler has returned.
	fenceWait  = 10 * time.Millisecond
	settleWait = 2 * time.Second
	// fenceMost is how many leases one call of Maintain ends.
	fenceMost = 1000
	// fenceWithin limits the time of a fence.
	fenceWithin = 10 * time.Second
)

// fences writes fences with keys, if this process leads, and returns what rows there are then:
// whether the row of a key is a fence, or an outcome that has been committed. For a key that
// is missing, a transaction had not ended within wait.
func (r *rows) fences(ctx context.Context, keys [][]byte, wait time.Duration) (fenced map[string]bool, err error) {
	ctx, stop := context.WithTimeout(ctx, fenceWithin)
	defer stop()
	fenced = make(map[string]bool, len(keys))
	if err = r.tryFences(ctx, keys, wait, fenced); !isBusy(err) {
		return fenced, explain(err)
	}
	if len(keys) == 1 {
		return fenced, nil
	}
	for i := range keys {
		if err := r.tryFences(ctx, keys[i:i+1], wait, fenced); err != nil && !isBusy(err) {
			return fenced, explain(err)
		}
	}
	return fenced, nil
}

// tryFences is fences in one transaction, which fails if it would have to wait for longer.
func (r *rows) tryFences(ctx context.Context, keys [][]byte, wait time.Duration, fenced map[string]bool) error {
	b := &pgx.Batch{}
	b.Queue(`select set_config('lock_timeout', $1, true)`, fmt.Sprint(wait.Milliseconds()))
	b.Queue(r.sql(`insert into $schema.rows (key, value) select e.key, '' from unnest($3::bytea[]) as e (key),
		(select from $schema.leader where epoch = $1 and id = $2 for key share) as led on conflict do nothing`),
		int64(r.epoch.Load()), r.id, keys)
	b.Queue(r.sql(`select key, value = '' from $schema.rows where key = any($1::bytea[])`), keys).
		Query(func(found pgx.Rows) error {
			var key []byte
			var fence bool
			_, err := pgx.ForEachRow(found, []any{&key, &fence}, func() error {
				fenced[string(key)] = fence
				return nil
			})
			return err
		})
	return r.pool.SendBatch(ctx, b).Close()
}

// isBusy reports whether a statement has ended because it would have had to wait.
func isBusy(err error) bool {
	const lockNotAvailable, deadlock = "55P03", "40P01"
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == lockNotAvailable || pg.Code == deadlock)
}

// resolve makes sure that no transaction settles attempts any more: those that have been
// settled have the outcome afterwards, and the others are fenced. settled has the keys of outcomes
// that it has accepted, and open is how many attempts are neither, because their transactions had
// not ended within wait.
func (s *Store) resolve(
	ctx context.Context, now time.Time, leases []machine.Lease, wait time.Duration,
) (settled map[string]bool, open int, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.life, stop)() //nolint:contextcheck // Close does not wait for transactions of others
	keys := make([][]byte, len(leases))
	for i, l := range leases {
		keys[i] = []byte(machine.OutcomeKey(l))
	}
	rows, err := s.db.fences(ctx, keys, wait)
	if s.life.Err() != nil {
		return nil, 0, queue.ErrClosed
	}
	if err != nil {
		return nil, 0, fmt.Errorf("fence attempts: %w", err)
	}
	var fenced, outcomes []string
	for key, fence := range rows {
		if fence {
			fenced = append(fenced, key)
		} else {
			outcomes = append(outcomes, key)
		}
	}
	slices.Sort(outcomes)
	settled = make(map[string]bool, len(outcomes))
	for len(outcomes) > 0 {
		answers, err := s.outcomes.Accept(ctx, now, outcomes)
		if err != nil {
			return nil, 0, err
		}
		for i, answer := range answers {
			accepted(s.log, answer, outcomes[i])
			switch {
			case answer == nil:
				settled[outcomes[i]] = true
			case !errors.Is(answer, queue.ErrStale) && !errors.Is(answer, machine.ErrNoOutcome):
				return nil, 0, answer
			}
		}
		outcomes = outcomes[len(answers):]
	}
	return settled, len(keys) - len(rows), s.outcomes.RecordFences(ctx, fenced)
}

// Settle is as [queue.Store] says. If the handler has settled the attempt in a transaction and
// the transaction commits, the transaction's outcome counts. If the transaction has not ended
// after 2 s, the error is [queue.ErrUnavailable].
func (s *Store) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	var inTx []machine.Lease
	for i := range outcomes {
		if l := (machine.Lease{ID: outcomes[i].ID, Token: outcomes[i].Token}); outcomes[i].InTx && s.outcomes.Runs(l) {
			inTx = append(inTx, l)
		}
	}
	if len(inTx) == 0 {
		return s.Machine.Settle(ctx, now, outcomes)
	}
	select {
	case s.waits <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: settle: other transactions that settle tasks are waited for: commit them, or roll them "+
			"back, before their handlers return: %w", queue.ErrUnavailable, context.Cause(ctx))
	}
	settled, open, err := s.resolve(ctx, now, inTx, settleWait)
	<-s.waits
	if err != nil {
		return nil, fmt.Errorf("%w: settle: %w", queue.ErrUnavailable, err)
	}
	var others []queue.Outcome
	var places []int // of others in outcomes
	for i := range outcomes {
		l := machine.Lease{ID: outcomes[i].ID, Token: outcomes[i].Token}
		isOpen := open > 0 && outcomes[i].InTx && s.outcomes.Runs(l)
		if !isOpen && !settled[machine.OutcomeKey(l)] {
			others, places = append(others, outcomes[i]), append(places, i)
		}
	}
	answers := make([]error, len(outcomes))
	if len(others) > 0 {
		part, err := s.Machine.Settle(ctx, now, others)
		if err != nil {
			return nil, err
		}
		for i, answer := range part {
			answers[places[i]] = answer
		}
	}
	if open > 0 {
		return nil, fmt.Errorf("%w: the transactions that settle %d tasks are still open, though their handlers have "+
			"returned: commit them, or roll them back, before the handler returns", queue.ErrUnavailable, open)
	}
	return answers, nil
}

// Maintain is as [queue.Store] says. A lease of an attempt that a transaction is settling does
// not end before that transaction does.
func (s *Store) Maintain(ctx context.Context, now time.Time, limit int) (time.Time, error) {
	if expired := s.outcomes.Expired(now, fenceMost); len(expired) > 0 {
		if _, _, err := s.resolve(ctx, now, expired, fenceWait); err != nil && !errors.Is(err, queue.ErrClosed) {
			s.log.Warn("leases that are over go on for a second: it is not known whether a transaction has settled them",
				slog.Int("leases", len(expired)), slog.Any("error", err))
		}
	}
	return s.Machine.Maintain(ctx, now, limit)
}
