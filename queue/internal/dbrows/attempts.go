package dbrows

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/stall"
)

const (
	// An attempt may take so long. The limit of an attempt that can be long because it has
	// much to do doubles after each one that reached it, up to attemptLast.
	attempt     = 10 * time.Second
	attemptLast = 2 * time.Minute
	// The pauses between attempts double from the first to the last.
	pauseFirst = 5 * time.Millisecond
	pauseLast  = time.Second
)

// attempts makes calls of a database server, each with as many attempts as it needs, until this
// process no longer leads or the attempts are closed. It is safe for concurrent use.
type attempts struct {
	server string
	logger *slog.Logger

	ctx  context.Context //nolint:containedctx // ends all attempts; its cause is why
	lost chan struct{}   // closed when this process no longer leads

	stall  stall.Stall
	health health

	mu     sync.Mutex // guards the fields below
	cancel context.CancelCauseFunc
	closed bool
	calls  sync.WaitGroup // calls of the server; Add is called with mu held
}

func newAttempts(server string, logger *slog.Logger) *attempts {
	a := &attempts{
		server: server, logger: logger, lost: make(chan struct{}), health: health{server: server, logger: logger},
	}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	return a
}

// try makes attempts until one succeeds, ctx ends, this process no longer leads, or the attempts
// are closed. do limits the time of an attempt.
func (a *attempts) try(ctx context.Context, do func(context.Context) error) error {
	if !a.enter() {
		return queue.ErrClosed
	}
	defer a.calls.Done()
	c := call{health: &a.health}
	defer c.end()
	err := a.repeat(ctx, &c, do)
	if err == nil {
		c.succeed() // after the stall has ended: once the log says so, no call is refused
	}
	return err
}

// repeat makes the attempts of a call.
func (a *attempts) repeat(ctx context.Context, c *call, do func(context.Context) error) error {
	defer a.stall.Watch(c.late)()
	for pause := pauseFirst; ; pause = min(2*pause, pauseLast) {
		if err := a.ended(); err != nil {
			return err
		}
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrFenced) || errors.Is(err, ErrLost):
			return a.end(err)
		case a.ended() != nil:
			return a.ended()
		case ctx.Err() != nil:
			return c.reason(err)
		}
		c.fail(err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		if ctx.Err() != nil && a.ended() == nil {
			return c.reason(err)
		}
	}
}

// ended returns why all attempts have ended, or nil.
func (a *attempts) ended() error { return context.Cause(a.ctx) }

// enter registers a call of the server, unless the attempts are closed.
func (a *attempts) enter() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.calls.Add(1)
	}
	return !a.closed
}

// abort ends all attempts, for a reason.
func (a *attempts) abort(why error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancel(why)
}

// end records that this process no longer leads, and returns why.
func (a *attempts) end(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() == nil {
		a.cancel(fmt.Errorf("%s: %w", a.server, err))
		close(a.lost)
		a.logger.Error("this process no longer leads", slog.String("server", a.server), slog.Any("error", err))
	}
	return a.ended()
}

// blocked returns why callers must not wait for a write, or nil: this process does not lead,
// or the server has been blocking a call for [stall.AnswerWithin].
func (a *attempts) blocked() error {
	select {
	case <-a.ctx.Done():
		return a.ended()
	case <-a.stall.Channel():
		return a.health.state()
	default:
		return nil
	}
}

// close ends all attempts, and returns when the calls have returned.
func (a *attempts) close() {
	a.mu.Lock()
	a.closed = true
	a.cancel(queue.ErrClosed)
	a.mu.Unlock()
	a.calls.Wait()
}
