package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/stintgo/stint/internal/wire"
)

// result is the caller of a call that is executed once, and how to answer its repetitions.
type result[Out any] struct {
	caller string                                                // see [idempotencyCache.do]
	again  func(ctx context.Context, now time.Time) (Out, error) // nil if a repetition may execute the call
}

// once serves a call that must not be executed again when a client repeats it. The
// client may disconnect during the call and ask for the answer later, so the call does
// not end with the client's connection.
func once[In, Out any](
	x *executor, do func(context.Context, time.Time, In) (Out, error), resultOf func(In, Out) result[Out],
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in In
		sum := sha256.New()
		_, _ = io.WriteString(sum, r.URL.Path+"\n")
		ahead := x.arrive(w, r)
		release, ok := x.bodies.decoded(w, r, &in, sum)
		if !ok {
			return
		}
		x.reply(w, r, func(ctx context.Context, now time.Time) answer {
			defer release()
			toServer(&in, ahead)
			key, to := r.Header.Get(wire.Key), encodingOf(r)
			if key == "" {
				out, err := do(ctx, now, in)
				toClient(&out, ahead)
				return to.answer(&out, err)
			}
			return x.cache.do(ctx, now, ahead, key, fingerprint(sum.Sum(nil)), func() (answer, string, replay) {
				return first(ctx, x, to, now, ahead, in, do, resultOf)
			})
		})
	})
}

// first executes a call, and returns its answer, its caller, and how to answer
// repetitions of it.
func first[In, Out any](
	ctx context.Context, x *executor, to encoding, now time.Time, ahead time.Duration, in In,
	do func(context.Context, time.Time, In) (Out, error), resultOf func(In, Out) result[Out],
) (a answer, caller string, again replay) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), x.timeout)
	defer stop()
	out, err := do(ctx, now, in)
	if errors.Is(err, wire.ErrInPart) {
		a = encoded(nil, err)
		return a, "", func(context.Context, time.Time, time.Duration) answer { return a }
	}
	if err != nil {
		return encoded(nil, err), "", nil
	}
	t := resultOf(in, out)
	toClient(&out, ahead)
	if t.again == nil {
		return to.answer(&out, nil), "", nil
	}
	return to.answer(&out, nil), t.caller, func(ctx context.Context, now time.Time, ahead time.Duration) answer {
		out, err := t.again(ctx, now)
		toClient(&out, ahead)
		return to.answer(&out, err)
	}
}
