package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/transfer/internal/protocol"
)

// repeated makes a request again until it succeeds, or until its error ends the attempt.
func (a *attempt) repeated(ctx context.Context, request func() error) error {
	b := backoff{policy: a.cfg.Retry}
	for {
		err := request()
		if err == nil {
			return nil
		}
		if err := a.again(ctx, &b, err); err != nil {
			return err
		}
	}
}

// again waits before a request is repeated, or returns the error that ends the attempt.
func (a *attempt) again(ctx context.Context, b *backoff, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if retry.IsPermanent(err) || startsOver(err) || errors.Is(err, errRead) {
		return err
	}
	delay, ok := b.next(err)
	if !ok {
		return fmt.Errorf("%d requests in a row failed: %w", b.failures, err)
	}
	a.cfg.Logger.Warn("a request of an upload failed, and is repeated", slog.Any("task", a.job.ID),
		slog.Duration("delay", delay), slog.Any("error", err))
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startsOver reports whether an error means that the whole file has to be sent again.
func startsOver(err error) bool {
	return errors.Is(err, protocol.ErrGone) || errors.Is(err, errUnverified) || errors.Is(err, protocol.ErrMismatch)
}

// backoff is the delays between requests that fail in a row. The policy decides how many.
type backoff struct {
	policy   retry.Policy
	failures int
	delay    time.Duration // the last one
}

// afterMax is the longest delay of a server's Retry-After for which an attempt waits. After a
// longer one the attempt fails, and leaves its slot to other tasks for that time.
const afterMax = 10 * time.Second

// next returns the delay before the next request, or false if there is none. An answer that says that the server is
// busy, and for how long, is not a failure: it may be busy with the uploads of others for any time.
func (b *backoff) next(err error) (time.Duration, bool) {
	after, has := retry.Delay(err)
	if has && after > 0 && after <= afterMax && isBusy(err) {
		return after, true
	}
	b.failures++
	delay, ok := b.policy.Next(b.failures, b.delay, rand.Uint64)
	b.delay = delay
	if has {
		return after, ok && after <= afterMax
	}
	return delay, ok
}
