package dbrows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/logthrottle"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/stall"
)

// Config is the configuration of rows. Server must be set.
type Config struct {
	Server string        // names the server and the rows in messages, without a password
	Name   string        // of this process, for others that want to lead
	Lease  time.Duration // of the leader; 0 is 5 s
	Logger *slog.Logger  // receives errors that no call returns; nil discards them
}

const (
	defaultLease = 5 * time.Second
	// attempt is how long one attempt may take. A write that takes longer on the server may
	// still be made: see Apply.
	attempt = 10 * time.Second
	// The pauses between attempts double from the first to the last.
	pauseFirst = 5 * time.Millisecond
	pauseLast  = time.Second
	// patience is how long Open and Close try to reach the server.
	patience = 5 * time.Second
)

// Rows are the rows of a machine on a database server. Apply, Get and Scan try until they
// succeed, Rows is closed, or another process leads. While the server cannot be reached,
// callers of the machine get an error after [stall.AnswerWithin]; what had been decided by
// then is written when the server is back.
type Rows struct {
	db  DB
	cfg Config

	ctx   context.Context //nolint:containedctx // ends all attempts in Close
	close context.CancelFunc

	term  Term // Batch is owned by Apply
	stall stall.Stall

	mu      sync.Mutex
	trouble error         // why an attempt has failed, until one succeeds
	lost    chan struct{} // closed when this process no longer leads
	over    error         // then the reason

	renewing sync.WaitGroup
}

var _ journal.Rows = (*Rows)(nil)

// Open makes this process the leader. If another one leads, Open returns a [*LedError]; it
// does not wait. The caller closes the rows, which close db, also if Open fails.
func Open(ctx context.Context, db DB, cfg Config) (*Rows, error) {
	cfg.Lease = cmp.Or(cfg.Lease, defaultLease)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.Logger = slog.New(logthrottle.New(cfg.Logger.Handler()))
	r := &Rows{db: db, cfg: cfg, lost: make(chan struct{})}
	r.ctx, r.close = context.WithCancel(context.Background())
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var led *LedError
	err := r.try(ctx, func(ctx context.Context) (err error) {
		if r.term, err = db.Lead(ctx, cfg.Name, cfg.Lease); errors.As(err, &led) {
			return nil
		}
		return err
	})
	if err == nil && led != nil {
		err = led
	}
	if err != nil {
		r.close()
		return nil, errors.Join(fmt.Errorf("%s: %w", cfg.Server, err), db.Close())
	}
	r.renewing.Go(r.renew)
	return r, nil
}

// Epoch is the epoch of this process.
func (r *Rows) Epoch() uint32 { return r.term.Epoch }

// Lost is closed when another process has taken the lead, or the server has lost changes:
// this process writes nothing more, and the store has to be closed.
func (r *Rows) Lost() <-chan struct{} { return r.lost }

// Stalled returns a channel that is closed while a batch is blocked for so long that
// callers must not wait for it.
func (r *Rows) Stalled() <-chan struct{} { return r.stall.Channel() }

// Room returns why callers must not wait for a write, or nil: this process does not lead,
// or the present batch has been blocked for [stall.AnswerWithin].
func (r *Rows) Room() error {
	select {
	case <-r.stall.Channel():
		return r.state()
	case <-r.lost:
		return r.state()
	default:
		return nil
	}
}

// state returns why nothing can be written now, or nil.
func (r *Rows) state() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.over, r.trouble)
}

// Apply is as [journal.Rows] says. An attempt whose outcome is unknown is followed by a look
// at the number of the last batch. If the batch was not made, it is tried again; if the
// first attempt is made nevertheless, because the server was still busy with it, the
// server refuses the second one, and the next look finds the batch.
func (r *Rows) Apply(batch []journal.Change) error {
	defer r.stall.Watch(r.state)()
	next := Term{r.term.Epoch, r.term.Batch + 1}
	changes := final(batch)
	unknown := false
	err := r.try(r.ctx, func(ctx context.Context) error {
		if unknown {
			made, err := r.look(ctx, next)
			if made || err != nil {
				return err
			}
		}
		unknown = true
		return r.db.Apply(ctx, next, changes)
	})
	if err == nil {
		r.term.Batch = next.Batch
	}
	return err
}

// look reports whether the server has the batch of the term next.
func (r *Rows) look(ctx context.Context, next Term) (made bool, err error) {
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
func (r *Rows) Get(key string) (value []byte, err error) {
	err = r.try(r.ctx, func(ctx context.Context) (err error) {
		value, err = r.db.Get(ctx, key)
		return err
	})
	return value, err
}

// Scan is as [journal.Rows] says. After an error it continues behind the last key.
func (r *Rows) Scan(from, to string, down bool, fn func(key string, value []byte) bool) error {
	return r.try(r.ctx, func(ctx context.Context) error {
		return r.db.Scan(ctx, from, to, down, func(key string, value []byte) bool {
			if down {
				to = key
			} else {
				from = key + "\x00"
			}
			return fn(key, value)
		})
	})
}

// try makes attempts until one succeeds, ctx ends, or this process no longer leads.
func (r *Rows) try(ctx context.Context, do func(context.Context) error) error {
	for pause := pauseFirst; ; pause = min(2*pause, pauseLast) {
		select {
		case <-r.lost:
			return r.state()
		default:
		}
		once, stop := context.WithTimeout(ctx, attempt)
		err := do(once)
		stop()
		switch {
		case err == nil:
			r.recover()
			return nil
		case errors.Is(err, ErrFenced) || errors.Is(err, ErrLost):
			return r.end(err)
		case ctx.Err() != nil:
			return cmp.Or(r.ended(), err)
		}
		r.fail(err)
		select {
		case <-ctx.Done():
			return cmp.Or(r.ended(), err)
		case <-r.lost:
		case <-time.After(pause):
		}
	}
}

// ended returns queue.ErrClosed after Close.
func (r *Rows) ended() error {
	if r.ctx.Err() != nil {
		return queue.ErrClosed
	}
	return nil
}

func (r *Rows) fail(err error) {
	r.mu.Lock()
	r.trouble = fmt.Errorf("%s does not answer as it should, and changes wait for it: %w", r.cfg.Server, err)
	r.mu.Unlock()
	r.cfg.Logger.Warn("the database fails; trying again", slog.String("server", r.cfg.Server), slog.Any("error", err))
}

func (r *Rows) recover() {
	r.mu.Lock()
	failed := r.trouble != nil
	r.trouble = nil
	r.mu.Unlock()
	if failed {
		r.cfg.Logger.Info("the database answers again", slog.String("server", r.cfg.Server))
	}
}

// end records that this process no longer leads, and returns why.
func (r *Rows) end(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over == nil {
		r.over = fmt.Errorf("%s: %w", r.cfg.Server, err)
		close(r.lost)
		r.cfg.Logger.Error("this process no longer leads", slog.String("server", r.cfg.Server), slog.Any("error", err))
	}
	return r.over
}

// renew extends the lease three times in its length, until the rows are closed.
func (r *Rows) renew() {
	for tick := time.NewTicker(r.cfg.Lease / 3); ; {
		select {
		case <-r.ctx.Done():
			tick.Stop()
			return
		case <-r.lost:
			tick.Stop()
			return
		case <-tick.C:
		}
		ctx, stop := context.WithTimeout(r.ctx, r.cfg.Lease/3)
		err := r.db.Renew(ctx, r.term.Epoch, r.cfg.Lease)
		stop()
		switch {
		case errors.Is(err, ErrFenced) || errors.Is(err, ErrLost):
			_ = r.end(err)
		case err != nil && r.ctx.Err() == nil:
			r.cfg.Logger.Warn("the lead cannot be renewed", slog.String("server", r.cfg.Server), slog.Any("error", err))
		}
	}
}

// GiveUp ends all attempts after 5 s. A store calls it before it closes the machine, whose
// Close would otherwise wait for a server that does not answer.
func (r *Rows) GiveUp() { time.AfterFunc(patience, r.close) }

// Close is as [journal.Rows] says. It ends the lease, so that another process can lead at
// once; if the server cannot be reached, the lease ends by itself.
func (r *Rows) Close() error {
	r.close()
	r.renewing.Wait()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if err := r.db.Resign(ctx, r.term.Epoch); err != nil {
		r.cfg.Logger.Warn("the lease of this process ends by itself: it could not be ended",
			slog.String("server", r.cfg.Server), slog.Any("error", err))
	}
	return r.db.Close()
}
