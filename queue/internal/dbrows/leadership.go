package dbrows

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

const (
	// Another process leads after a killed one when the lease has ended, 1.3 to 2 s later. If
	// the server does not answer for 2 s, another process may lead.
	defaultLease = 2 * time.Second

	// LeaseMost is the longest lease.
	LeaseMost = time.Minute
	// LeaseOfNow is the longest time for which a lease may last still. One that lasts longer was taken or
	// given up before the clock of the server was set back, and counts as ended, since its leader may
	// have gone with that clock. If the leader lives, it may answer calls that read until its next renewal.
	LeaseOfNow = 2 * LeaseMost
	// patience is how long Close tries to reach the server, and Open by default.
	patience = 5 * time.Second
	// epochMax is the largest epoch of a machine.
	epochMax = 1<<24 - 1
)

// leadership is the lease by which this process leads, and the clock of the server, by which
// the lease ends. It is safe for concurrent use once take has returned.
type leadership struct {
	db       DB
	attempts *attempts
	leader   queue.Leader // this process
	length   time.Duration

	// Set by take.
	epoch  uint32
	vacant time.Duration

	clock clock.Remote // of the server
	// until is when the lease ends, if the server has answered no later renewal.
	until atomic.Pointer[time.Time]
}

// take makes this process the leader, and returns the number of the last batch.
func (l *leadership) take(ctx context.Context) (batch uint64, err error) {
	var term Term
	var led *queue.LedError
	err = l.attempts.try(ctx, func(ctx context.Context) (err error) {
		ctx, stop := context.WithTimeout(ctx, patience/2)
		defer stop()
		l.extend(clock.Now())
		if term, err = l.db.Lead(ctx, l.leader, l.length); errors.As(err, &led) {
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case led != nil:
		return 0, fmt.Errorf("%s: %w", l.attempts.server, led)
	case term.Epoch > epochMax:
		return 0, fmt.Errorf("%s has had %d leaders, and more are not possible",
			l.attempts.server, epochMax)
	}
	l.epoch, l.vacant = term.Epoch, term.Vacant
	return term.Batch, nil
}

// extend records that the lease begins, or is renewed, by a call that is sent at a time. Calls
// may be answered in another order.
func (l *leadership) extend(sent time.Time) {
	until := sent.Add(l.length)
	for {
		known := l.until.Load()
		if known != nil && !known.Before(until) || l.until.CompareAndSwap(known, &until) {
			return
		}
	}
}

// holds reports whether the lease of this process has not ended. If it has not, no other
// process has led before the call.
func (l *leadership) holds() bool {
	now, until := clock.Now(), *l.until.Load()
	// The monotonic clock stops while the system is suspended, and the other may be set back.
	return l.attempts.ended() == nil && now.Before(until) && now.Round(0).Before(until.Round(0))
}

// renew extends the lease three times in its length, until the process no longer leads or
// the attempts are closed. A renewal may take two thirds of the lease, so the next one does not wait
// for it: the server may be slow for all of them, or silent for one. Close waits for the last
// renewal: the server could carry out a cancelled one after Resign.
func (l *leadership) renew() {
	c := call{health: &l.attempts.health}
	defer c.end()
	var renewals sync.WaitGroup
	defer renewals.Wait()
	l.eachThird(func() { renewals.Go(func() { l.renewOnce(&c) }) })
}

// eachThird calls do three times in the length of the lease, until the process no longer leads
// or the attempts are closed.
func (l *leadership) eachThird(do func()) {
	tick := time.NewTicker(l.length / 3)
	defer tick.Stop()
	for {
		select {
		case <-l.attempts.ctx.Done():
		case <-tick.C:
		}
		if l.attempts.ended() != nil { // even if there is a tick as well
			return
		}
		do()
	}
}

// renewOnce extends the lease once.
func (l *leadership) renewOnce(c *call) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(l.attempts.ctx), min(l.length*2/3, patience))
	defer stop()
	sent := clock.Now()
	err := l.db.Renew(ctx, l.epoch, l.length)
	switch {
	case errors.Is(err, ErrFenced) || errors.Is(err, ErrLost):
		_ = l.attempts.end(err)
	case err == nil:
		l.extend(sent)
		c.succeed()
		l.attempts.health.logRoom(l.db.Full())
	case l.until.Load().Before(sent.Add(l.length)): // a later renewal has not succeeded
		c.fail(fmt.Errorf("renew the lease of the leader: %w", err))
	}
}

// readClock reads the clock of the server.
func (l *leadership) readClock(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, patience/2)
	defer stop()
	sent := clock.Now()
	shown, err := l.db.Now(ctx)
	if err == nil {
		l.clock.Read(shown, sent, clock.Now())
	}
	return err
}

// readClocks reads the clock of the server as often as the lease is renewed.
func (l *leadership) readClocks() {
	l.eachThird(func() { _ = l.readClock(l.attempts.ctx) }) // the next one reads it again
}

// resign ends the lease. The first attempt may meet a connection that is broken.
func (l *leadership) resign() (err error) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	for range 3 {
		if err = l.db.Resign(ctx, l.epoch); err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}
