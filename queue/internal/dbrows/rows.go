package dbrows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/stall"
)

// Config is the configuration of rows. Server must be set.
type Config struct {
	Server   string        // names the server and the rows in messages, without a password
	Leader   queue.Leader  // this process, for others that want to lead: Name and Contact
	Lease    time.Duration // of the leader; 0 is 2 s
	Patience time.Duration // how long Open tries to reach the server; 0 is 5 s
	Logger   *slog.Logger  // receives errors that no call returns; nil discards them
}

const (
	// Another process leads after a killed one when the lease has ended, 1.3 to 2 s later. If
	// the server does not answer for so long, another process may lead.
	defaultLease = 2 * time.Second
	// An attempt may take so long. The limit of an attempt that can be long because it has
	// much to do doubles after each one that reached it, up to attemptLast.
	attempt     = 10 * time.Second
	attemptLast = 2 * time.Minute
	// A read may take so long while callers do not wait for the server any more. The machine
	// is locked meanwhile.
	stalledRead = 100 * time.Millisecond
	// The pauses between attempts double from the first to the last.
	pauseFirst = 5 * time.Millisecond
	pauseLast  = time.Second
	// patience is how long Close tries to reach the server, and Open by default.
	patience = 5 * time.Second
	// epochMax is the largest epoch of a machine.
	epochMax = 1<<24 - 1
)

// Rows are the rows of a machine on a database server. Apply and the reads try until they
// succeed, Rows is closed, or another process leads. While the server cannot be reached,
// callers of the machine get an error after [stall.AnswerWithin]; what had been decided by
// then is written when the server is back.
type Rows struct {
	db     DB
	cfg    Config
	epoch  uint32
	batch  uint64 // the number of the last batch; owned by Apply
	vacant time.Duration
	clock  clock.Remote // of the server

	ctx  context.Context //nolint:containedctx // ends all attempts; its cause is why
	lost chan struct{}   // closed when this process no longer leads

	// until is when the lease ends, if the server has answered no later renewal.
	until atomic.Pointer[time.Time]
	open  atomic.Bool // the machine is open: it is locked while it reads
	full  atomic.Bool // that the server has no room was logged

	stall  stall.Stall
	health health

	mu     sync.Mutex // guards the fields below
	cancel context.CancelCauseFunc
	closed bool
	calls  sync.WaitGroup // calls of db; Add is called with mu held
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
	r := &Rows{
		db: db, cfg: cfg, lost: make(chan struct{}), health: health{server: cfg.Server, logger: cfg.Logger},
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	within, stop := context.WithTimeout(ctx, cfg.Patience)
	defer stop()
	if err := r.lead(within); err != nil {
		r.abort(queue.ErrClosed)
		return nil, errors.Join(err, db.Close())
	}
	r.logFull()
	r.calls.Go(r.renew) // from now on: to read the clock may take most of the lease
	if err := r.try(within, r.readClock); err != nil {
		return nil, errors.Join(err, r.Close()) //nolint:contextcheck // which ends the lease, though ctx may have ended
	}
	r.calls.Go(r.readClocks)
	return r, nil
}

// lead makes this process the leader.
func (r *Rows) lead(ctx context.Context) error {
	var term Term
	var led *queue.LedError
	err := r.try(ctx, func(ctx context.Context) (err error) {
		ctx, stop := context.WithTimeout(ctx, patience/2)
		defer stop()
		r.leadsFrom(clock.Now())
		if term, err = r.db.Lead(ctx, r.cfg.Leader, r.cfg.Lease); errors.As(err, &led) {
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case led != nil:
		return fmt.Errorf("%s: %w", r.cfg.Server, led)
	case term.Epoch > epochMax:
		return fmt.Errorf("%s has had %d leaders, and more are not possible",
			r.cfg.Server, epochMax)
	}
	r.epoch, r.batch, r.vacant = term.Epoch, term.Batch, term.Vacant
	return nil
}

// readClock reads the clock of the server.
func (r *Rows) readClock(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, patience/2)
	defer stop()
	sent := clock.Now()
	shown, err := r.db.Now(ctx)
	if err == nil {
		r.clock.Read(shown, sent, clock.Now())
	}
	return err
}

// Now returns the time by the clock of the server. If that clock is set while this process
// leads, Now approaches it slowly.
func (r *Rows) Now() time.Time { return r.clock.Now() }

// leadsFrom records that the lease begins, or is renewed, by a call that is sent at a time. Calls
// may be answered in another order.
func (r *Rows) leadsFrom(sent time.Time) {
	until := sent.Add(r.cfg.Lease)
	for {
		known := r.until.Load()
		if known != nil && !known.Before(until) || r.until.CompareAndSwap(known, &until) {
			return
		}
	}
}

// Leads reports whether the lease of this process has not ended. If it has not, no other
// process has led before the call.
func (r *Rows) Leads() bool {
	now, until := clock.Now(), *r.until.Load()
	// The monotonic clock stops while the system is suspended, and the other may be set back.
	return r.ended() == nil && now.Before(until) && now.Round(0).Before(until.Round(0))
}

// Trouble returns why the server does not do what it is asked at present; nil if it does.
func (r *Rows) Trouble() error { return r.health.state() }

// Opened limits the time of reads from now on: the machine has been opened.
func (r *Rows) Opened() { r.open.Store(true) }

// whileLocked returns the context of a read, for which an open machine is locked. It ends
// sooner while callers do not wait for the server any more.
func (r *Rows) whileLocked() (context.Context, context.CancelFunc) {
	limit := stall.AnswerWithin
	switch {
	case !r.open.Load():
		return r.ctx, func() {}
	case r.blocked() != nil:
		limit = stalledRead
	}
	return context.WithTimeout(r.ctx, limit)
}

// Vacant is how long no process had led before this one, by the server's clock, as far as the
// server remembers; 0 if it does not know.
func (r *Rows) Vacant() time.Duration { return r.vacant }

// Epoch is the epoch of this process.
func (r *Rows) Epoch() uint32 { return r.epoch }

// Lost is closed when another process has taken the lead, or the server has lost changes:
// this process writes nothing more, and the store has to be closed.
func (r *Rows) Lost() <-chan struct{} { return r.lost }

// Stalled returns a channel that is closed while the server has been blocking a call for so
// long that callers must not wait for it.
func (r *Rows) Stalled() <-chan struct{} { return r.stall.Channel() }

// Room returns why no tasks are accepted, or nil: callers must not wait for a write, or the
// server has no room for more.
func (r *Rows) Room() error { return cmp.Or(r.blocked(), r.db.Full()) }

// blocked returns why callers must not wait for a write, or nil: this process does not lead,
// or the server has been blocking a call for [stall.AnswerWithin].
func (r *Rows) blocked() error {
	select {
	case <-r.ctx.Done():
		return r.ended()
	case <-r.stall.Channel():
		return r.health.state()
	default:
		return nil
	}
}

// Apply is as [journal.Rows] says. An attempt whose outcome is unknown is followed by a look
// at the number of the last batch. If the batch was not made, it is tried again; if the
// first attempt is made nevertheless, because the server was still busy with it, the
// server refuses the second one, and the next look finds the batch.
func (r *Rows) Apply(batch []journal.Change) error {
	next := Term{Epoch: r.epoch, Batch: r.batch + 1}
	changes := final(batch)
	limit, unknown := attempt, false
	err := r.try(r.ctx, func(ctx context.Context) error {
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
	err = r.try(ctx, func(ctx context.Context) (err error) {
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
	if err == nil && now.Epoch != r.epoch {
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
	err := r.try(ctx, func(ctx context.Context) error {
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

// try makes attempts until one succeeds, ctx ends, this process no longer leads, or the rows
// are closed. do limits the time of an attempt.
func (r *Rows) try(ctx context.Context, do func(context.Context) error) error {
	if !r.enter() {
		return queue.ErrClosed
	}
	defer r.calls.Done()
	c := call{health: &r.health}
	defer c.end()
	err := r.repeat(ctx, &c, do)
	if err == nil {
		c.succeed() // after the stall has ended: once the log says so, no call is refused
	}
	return err
}

// repeat makes the attempts of a call.
func (r *Rows) repeat(ctx context.Context, c *call, do func(context.Context) error) error {
	defer r.stall.Watch(c.late)()
	for pause := pauseFirst; ; pause = min(2*pause, pauseLast) {
		if err := r.ended(); err != nil {
			return err
		}
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrFenced) || errors.Is(err, ErrLost):
			return r.end(err)
		case r.ended() != nil:
			return r.ended()
		case ctx.Err() != nil:
			return c.reason(err)
		}
		c.fail(err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		if ctx.Err() != nil && r.ended() == nil {
			return c.reason(err)
		}
	}
}

// ended returns why all attempts have ended, or nil.
func (r *Rows) ended() error { return context.Cause(r.ctx) }

// enter registers a call of db, unless the rows are closed.
func (r *Rows) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.calls.Add(1)
	}
	return !r.closed
}

// abort ends all attempts, for a reason.
func (r *Rows) abort(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel(why)
}

// end records that this process no longer leads, and returns why.
func (r *Rows) end(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() == nil {
		r.cancel(fmt.Errorf("%s: %w", r.cfg.Server, err))
		close(r.lost)
		r.cfg.Logger.Error("this process no longer leads", slog.String("server", r.cfg.Server), slog.Any("error", err))
	}
	return r.ended()
}

// renew extends the lease three times in its length, until the process no longer leads or
// the rows are closed. A renewal may take two thirds of the lease, so the next one does not wait
// for it: the server may be slow for all of them, or silent for one. Close waits for the last
// renewal: the server could carry out a cancelled one after Resign.
func (r *Rows) renew() {
	c := call{health: &r.health}
	defer c.end()
	var renewals sync.WaitGroup
	defer renewals.Wait()
	r.eachThird(func() { renewals.Go(func() { r.renewOnce(&c) }) })
}

// eachThird calls do three times in the length of the lease, until the process no longer leads
// or the rows are closed.
func (r *Rows) eachThird(do func()) {
	tick := time.NewTicker(r.cfg.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
		case <-tick.C:
		}
		if r.ended() != nil { // even if there is a tick as well
			return
		}
		do()
	}
}

// renewOnce extends the lease once.
func (r *Rows) renewOnce(c *call) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(r.ctx), min(r.cfg.Lease*2/3, patience))
	defer stop()
	sent := clock.Now()
	err := r.db.Renew(ctx, r.epoch, r.cfg.Lease)
	switch {
	case errors.Is(err, ErrFenced) || errors.Is(err, ErrLost):
		_ = r.end(err)
	case err == nil:
		r.leadsFrom(sent)
		c.succeed()
		r.logFull()
	case r.until.Load().Before(sent.Add(r.cfg.Lease)): // a later renewal has not succeeded
		c.fail(fmt.Errorf("renew the lease of the leader: %w", err))
	}
}

// logFull logs when the server has no room for more tasks, and when it has some again.
func (r *Rows) logFull() {
	switch why := r.db.Full(); {
	case why != nil && r.full.CompareAndSwap(false, true):
		r.cfg.Logger.Warn("the database has no room: new tasks are refused, and the others go on",
			slog.String("server", r.cfg.Server), slog.Any("error", why))
	case why == nil && r.full.CompareAndSwap(true, false):
		r.cfg.Logger.Info("the database has room again", slog.String("server", r.cfg.Server))
	}
}

// readClocks reads the clock of the server as often as the lease is renewed.
func (r *Rows) readClocks() {
	r.eachThird(func() { _ = r.readClock(r.ctx) }) // the next one reads it again
}

// GiveUp ends all attempts now. The opening of a machine fails then.
func (r *Rows) GiveUp() { r.abort(queue.ErrClosed) }

// GiveUpSoon ends all attempts after 5 s. A store calls it before it closes the machine, whose
// Close would otherwise wait for a server that does not answer.
func (r *Rows) GiveUpSoon() { time.AfterFunc(patience, r.GiveUp) }

// Close is as [journal.Rows] says, but calls of the lease log may still run: they return an
// error. It ends the lease, so that another process can lead at once; if the server cannot
// be reached, the lease ends by itself.
func (r *Rows) Close() error {
	r.mu.Lock()
	r.closed = true
	r.cancel(queue.ErrClosed)
	r.mu.Unlock()
	r.calls.Wait()
	if err := r.resign(); err != nil {
		r.cfg.Logger.Warn("the lease of this process ends by itself: it could not be ended",
			slog.String("server", r.cfg.Server), slog.Any("error", err))
	}
	return r.db.Close()
}

// resign ends the lease. The first attempt may meet a connection that is broken.
func (r *Rows) resign() (err error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	for range 3 {
		if err = r.db.Resign(ctx, r.epoch); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}
