package dbrows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/stall"
)

// Config is the configuration of rows. Server must be set.
type Config struct {
	Server   string        // names the server and the rows in messages, without a password
	Leader   queue.Leader  // this process, for others that want to lead: Name and Contact
	Lease    time.Duration // of the leader; 0 means 2 s
	Patience time.Duration // how long Open tries to reach the server; 0 means 5 s
	Logger   *slog.Logger  // receives errors that no call returns; nil discards them
}

// A read may take so long while callers do not wait for the server any more. The machine is
// locked meanwhile.
const stalledRead = 100 * time.Millisecond

// Rows are the rows of a machine on a database server. Apply and the reads try until they
// succeed, Rows is closed, or another process leads. While the server cannot be reached,
// callers of the machine get an error after [stall.AnswerWithin]; what had been decided by
// then is written when the server is back.
type Rows struct {
	db       DB
	attempts *attempts
	leads    *leadership
	batch    uint64      // the number of the last batch; owned by Apply
	open     atomic.Bool // the machine is open: it is locked while it reads
}

var (
	_ journal.Rows      = (*Rows)(nil)
	_ journal.KeyReader = (*Rows)(nil)
)

// Open makes this process the leader. If another one leads, Open returns a [*queue.LedError]; it
// does not wait. The caller closes the rows, which close db, also if Open fails.
func Open(ctx context.Context, db DB, cfg Config) (*Rows, error) {
	cfg.Lease = cmp.Or(cfg.Lease, defaultLease)
	cfg.Patience = cmp.Or(cfg.Patience, patience)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Rows{db: db, attempts: newAttempts(cfg.Server, cfg.Logger)}
	r.leads = &leadership{db: db, attempts: r.attempts, leader: cfg.Leader, length: cfg.Lease}
	within, stop := context.WithTimeout(ctx, cfg.Patience)
	defer stop()
	var err error
	if r.batch, err = r.leads.take(within); err != nil {
		r.attempts.abort(queue.ErrClosed)
		return nil, errors.Join(err, db.Close())
	}
	r.attempts.health.logRoom(db.Full())
	r.attempts.calls.Go(r.leads.renew) // from now on: to read the clock may take most of the lease
	if err := r.attempts.try(within, r.leads.readClock); err != nil {
		return nil, errors.Join(err, r.Close()) //nolint:contextcheck // which ends the lease, though ctx may have ended
	}
	r.attempts.calls.Go(r.leads.readClocks)
	return r, nil
}

// Now returns the time by the clock of the server. If that clock is set while this process
// leads, Now approaches it slowly.
func (r *Rows) Now() time.Time { return r.leads.clock.Now() }

// Leads reports whether the lease of this process has not ended. If it has not, no other
// process has led before the call.
func (r *Rows) Leads() bool { return r.leads.holds() }

// Trouble returns why the server does not do what it is asked at present; nil if it does.
func (r *Rows) Trouble() error { return r.attempts.health.state() }

// Opened limits the time of reads from now on: the machine has been opened.
func (r *Rows) Opened() { r.open.Store(true) }

// whileLocked returns the context of a read, for which an open machine is locked. It ends
// sooner while callers do not wait for the server any more.
func (r *Rows) whileLocked() (context.Context, context.CancelFunc) {
	limit := stall.AnswerWithin
	switch {
	case !r.open.Load():
		return r.attempts.ctx, func() {}
	case r.attempts.blocked() != nil:
		limit = stalledRead
	}
	return context.WithTimeout(r.attempts.ctx, limit)
}

// Vacant is how long no process had led before this one, by the server's clock, as far as the
// server remembers; 0 if it does not know.
func (r *Rows) Vacant() time.Duration { return r.leads.vacant }

// Epoch is the epoch of this process.
func (r *Rows) Epoch() uint32 { return r.leads.epoch }

// Lost is closed when another process has taken the lead, or the server has lost changes:
// this process writes nothing more, and the store has to be closed.
func (r *Rows) Lost() <-chan struct{} { return r.attempts.lost }

// Stalled returns a channel that is closed while the server has been blocking a call for so
// long that callers must not wait for it.
func (r *Rows) Stalled() <-chan struct{} { return r.attempts.stall.Channel() }

// Room returns why no tasks are accepted, or nil: callers must not wait for a write, or the
// server has no room for more.
func (r *Rows) Room() error { return cmp.Or(r.attempts.blocked(), r.db.Full()) }

// Apply is as [journal.Rows] says. An attempt whose outcome is unknown is followed by a look
// at the number of the last batch. If the batch was not made, it is tried again; if the
// first attempt is made nevertheless, because the server was still busy with it, the
// server refuses the second one, and the next look finds the batch.
func (r *Rows) Apply(batch []journal.Change) error {
	next := Term{Epoch: r.leads.epoch, Batch: r.batch + 1}
	changes := final(batch)
	limit, unknown := attempt, false
	err := r.attempts.try(r.attempts.ctx, func(ctx context.Context) error {
		if unknown {
			made, err := r.look(ctx, next)
			if made || err != nil {
				return err
			}
		}
		unknown = true
		ctx, stop := context.WithTimeout(ctx, limit)
		defer stop()
		err := r.db.Apply(ctx, next, changes)
		if ctx.Err() != nil {
			limit = min(2*limit, attemptLast)
		}
		return err
	})
	if err == nil {
		r.batch = next.Batch
	}
	return err
}

// look reports whether the server has the batch of the term next.
func (r *Rows) look(ctx context.Context, next Term) (made bool, err error) {
	ctx, stop := context.WithTimeout(ctx, attempt)
	defer stop()
	now, err := r.db.Term(ctx)
	switch {
	case err != nil:
		return false, err
	case now.Epoch > next.Epoch:
		return false, ErrFenced
	case now.Epoch < next.Epoch:
		return false, fmt.Errorf("%w: its last leader was that of epoch %d, and this one is that of %d",
			ErrLost, now.Epoch, next.Epoch)
	case now.Batch == next.Batch:
		return true, nil
	case now.Batch != next.Batch-1:
		return false, fmt.Errorf("%w: its last batch is %d, and %d was confirmed", ErrLost, now.Batch, next.Batch-1)
	}
	return false, nil
}

// final returns the last change of each key.
func final(batch []journal.Change) []journal.Change {
	at := make(map[string]int, len(batch))
	changes := make([]journal.Change, 0, len(batch))
	for _, c := range batch {
		if i, ok := at[c.Key]; ok {
			changes[i] = c
			continue
		}
		at[c.Key] = len(changes)
		changes = append(changes, c)
	}
	return changes
}

// Get is as [journal.Rows] says.
func (r *Rows) Get(key string) ([]byte, error) {
	return readOnce(r, func(ctx context.Context) ([]byte, error) { return r.db.Get(ctx, key) })
}

// ReadKeys is as [journal.KeyReader] says.
func (r *Rows) ReadKeys(keys []string, most int) ([][]byte, error) {
	return readOnce(r, func(ctx context.Context) ([][]byte, error) { return r.db.ReadKeys(ctx, keys, most) })
}

// readOnce reads by one call of the server, for which an open machine is locked.
func readOnce[T any](r *Rows, read func(context.Context) (T, error)) (found T, err error) {
	ctx, stop := r.whileLocked()
	defer stop()
	err = r.attempts.try(ctx, func(ctx context.Context) (err error) {
		ctx, stop := context.WithTimeout(ctx, attempt)
		defer stop()
		if found, err = read(ctx); err != nil {
			return err
		}
		return r.confirm(ctx)
	})
	if err != nil {
		var none T
		return none, fmt.Errorf("%w: %w", journal.ErrAway, err)
	}
	return found, nil
}

// confirm returns an error if what was read before the call may have been written by another
// leader: it would contradict what the machine has in memory. Only if the lease has ended,
// that takes a call of the server.
func (r *Rows) confirm(ctx context.Context) error {
	if r.Leads() {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, attempt)
	defer stop()
	now, err := r.db.Term(ctx)
	if err == nil && now.Epoch != r.leads.epoch {
		err = ErrFenced
	}
	return err
}

// Scan is as [journal.Rows] says. After an error it continues behind the last key. An
// attempt may take any time, but not between two keys. After an error, what fn was given
// may be of another leader.
func (r *Rows) Scan(from, to string, down bool, fn func(key string, value []byte) bool) error {
	limit, stopped, complete := attempt, false, false
	ctx, stop := r.whileLocked()
	defer stop()
	err := r.attempts.try(ctx, func(ctx context.Context) error {
		if complete {
			return r.confirm(ctx)
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		silent := time.AfterFunc(limit, stop)
		defer silent.Stop()
		last, found := "", false
		err := r.db.Scan(ctx, from, to, down, func(key string, value []byte) bool {
			silent.Reset(limit)
			last, found = key, true
			stopped = !fn(key, value)
			return !stopped
		})
		switch {
		case stopped, err == nil: // an error after the last call of fn does not matter
			complete = true
			return r.confirm(ctx)
		case found && down:
			to = last
		case found:
			from = last + "\x00"
		case ctx.Err() != nil:
			limit = min(2*limit, attemptLast)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", journal.ErrAway, err)
	}
	return nil
}

// GiveUp ends all attempts now. The opening of a machine fails then.
func (r *Rows) GiveUp() { r.attempts.abort(queue.ErrClosed) }

// GiveUpSoon ends all attempts after 5 s. A store calls it before it closes the machine, whose
// Close would otherwise wait for a server that does not answer.
func (r *Rows) GiveUpSoon() { time.AfterFunc(patience, r.GiveUp) }

// Close is as [journal.Rows] says, but calls of the lease log may still run: they return an
// error. It ends the lease, so that another process can lead at once; if the server cannot
// be reached, the lease ends by itself.
func (r *Rows) Close() error {
	r.attempts.close()
	if err := r.leads.resign(); err != nil {
		r.attempts.logger.Warn("the lease of this process ends by itself: it could not be ended",
			slog.String("server", r.attempts.server), slog.Any("error", err))
	}
	return r.db.Close()
}
