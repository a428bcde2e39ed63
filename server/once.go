package server

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// result says how to answer a repetition of a call that is executed once.
type result[Out any] struct {
	caller string                                                // see [idempotencyCache.do]
	again  func(ctx context.Context, now time.Time) (Out, error) // nil if a repetition may execute the call
}

// once serves a call that must not be executed again when a client repeats it. The
// client may disconnect during the call and ask for the answer later, so the call does
// not end with the client's connection.
func once[In, Out any](
	s *Server, do func(context.Context, time.Time, In) (Out, error), resultOf func(In, Out) result[Out],
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in In
		sum := sha256.New()
		_, _ = io.WriteString(sum, r.URL.Path+"\n")
		ahead := s.arrive(w, r)
		s.bodies.decoded(w, r, &in, sum, func() {
			s.reply(w, r, func(ctx context.Context, now time.Time) answer {
				toServer(&in, ahead)
				key := r.Header.Get(wire.Key)
				if key == "" {
					out, err := do(ctx, now, in)
					toClient(&out, ahead)
					return encoded(out, err)
				}
				return s.cache.do(ctx, now, key, fingerprint(sum.Sum(nil)), func() (answer, string, repeat) {
					return first(ctx, s, now, ahead, in, do, resultOf)
				})
			})
		})
	})
}

// first executes a call, and returns its answer, its caller, and how to answer
// repetitions of it.
func first[In, Out any](
	ctx context.Context, s *Server, now time.Time, ahead time.Duration, in In,
	do func(context.Context, time.Time, In) (Out, error), resultOf func(In, Out) result[Out],
) (a answer, caller string, again repeat) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeout)
	defer stop()
	out, err := do(ctx, now, in)
	if err != nil {
		return encoded(nil, err), "", nil
	}
	t := resultOf(in, out)
	toClient(&out, ahead)
	if t.again == nil {
		return encoded(out, nil), "", nil
	}
	return encoded(out, nil), t.caller, func(ctx context.Context, now time.Time) answer {
		out, err := t.again(ctx, now)
		toClient(&out, ahead)
		return encoded(out, err)
	}
}

// replayClaim answers a repeated claim with those tasks of the first that are still
// leased by it, in their present state. It reads them from the store, since keeping them
// would keep their payloads in memory. A claim that returned no tasks may be executed
// again.
func (s *Server) replayClaim(in queue.Claim, out queue.Claimed) result[queue.Claimed] {
	if len(out.Tasks) == 0 {
		return result[queue.Claimed]{}
	}
	ids, tokens := make([]queue.ID, len(out.Tasks)), make([]queue.Token, len(out.Tasks))
	for i := range out.Tasks {
		ids[i], tokens[i] = out.Tasks[i].ID, out.Tasks[i].Lease.Token
	}
	next := out.Next
	return result[queue.Claimed]{"worker " + in.Worker, func(ctx context.Context, _ time.Time) (queue.Claimed, error) {
		found, err := s.store.Find(ctx, queue.Filter{IDs: ids}, queue.Page{Limit: len(ids)})
		if err != nil {
			return queue.Claimed{}, err
		}
		now := make(map[queue.ID]*queue.Task, len(found))
		for i := range found {
			now[found[i].ID] = &found[i]
		}
		out := queue.Claimed{Next: next}
		for i, id := range ids {
			if t := now[id]; t != nil && t.State == queue.Running && t.Lease.Token == tokens[i] {
				out.Tasks = append(out.Tasks, *t)
			}
		}
		return out, nil
	}}
}

// replayCommand answers a repeated command with the count of the first.
func replayCommand(_ queue.Command, out wire.Changed) result[wire.Changed] {
	return result[wire.Changed]{again: func(context.Context, time.Time) (wire.Changed, error) { return out, nil }}
}
