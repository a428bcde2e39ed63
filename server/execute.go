package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// executor executes calls: it decodes them, converts their times, and encodes their answers. It is
// safe for concurrent use.
type executor struct {
	now     func() time.Time
	timeout time.Duration // for a call that is executed once, which may outlive its connection
	bodies  *bodies
	cache   *idempotencyCache
	to      *responder
}

// call serves a call that has a body.
func call[In, Out any](x *executor, do func(context.Context, time.Time, In) (Out, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in In
		ahead := x.arrive(w, r)
		release, ok := x.bodies.decoded(w, r, &in, nil)
		if !ok {
			return
		}
		x.reply(w, r, func(ctx context.Context, now time.Time) answer {
			defer release() // a client that does not read the answer keeps no memory from others
			toServer(&in, ahead)
			out, err := do(ctx, now, in)
			err = asPart(r, &out, err)
			toClient(&out, ahead)
			return encodingOf(r).answer(&out, err)
		})
	})
}

// ask serves a call whose parameters, if it has any, are in its URL.
func ask[Out any](x *executor, do func(context.Context, time.Time, url.Values) (Out, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ahead := x.arrive(w, r)
		x.reply(w, r, func(ctx context.Context, now time.Time) answer {
			out, err := do(ctx, now, r.URL.Query())
			err = asPart(r, &out, err)
			toClient(&out, ahead)
			return encoded(out, err)
		})
	})
}

// asPart puts a [queue.PartialError] into the answer, if it has a part and the client of the call
// understands that. It returns any other error.
func asPart(r *http.Request, out any, err error) error {
	partial, ok := errors.AsType[*queue.PartialError](err)
	if !ok || r.Header.Get(wire.Partial) == "" {
		return err
	}
	answer, ok := out.(interface {
		SetMissing(groups []queue.MissingGroup)
	})
	if !ok {
		return err
	}
	answer.SetMissing(partial.Missing)
	return nil
}

// arrive returns how far the server's clock is ahead of the client's when a call arrives, before
// its body, which may take long: that time is not counted as a difference of the clocks. The
// answer states the arrival by the client's clock.
func (x *executor) arrive(w http.ResponseWriter, r *http.Request) (ahead time.Duration) {
	now := clock.NowIn(r.Context(), x.now)
	ahead = aheadOf(r, now)
	w.Header().Set(wire.Now, now.Add(-ahead).Format(time.RFC3339Nano))
	return ahead
}

// reply executes a call, and sends its answer.
func (x *executor) reply(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, now time.Time) answer) {
	a := do(r.Context(), clock.NowIn(r.Context(), x.now))
	if r.Context().Err() != nil {
		x.to.send(w, a) // the client has left, and the call's context ended with it: no error to log
		return
	}
	x.to.write(w, a)
}
