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

// told is how a call that is done once is told to who repeats it.
type told[Out any] struct {
	caller string                                                // see [replays.do]
	again  func(ctx context.Context, now time.Time) (Out, error) // nil if it may as well be done again
}

// once serves a call that must not be done again when it is repeated. The client
// may leave while it is done, and ask for the answer later, so it does not end
// with the client's connection.
func once[In, Out any](
	s *Server, do func(context.Context, time.Time, In) (Out, error), tell func(In, Out) told[Out],
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in In
		sum := sha256.New()
		_, _ = io.WriteString(sum, r.URL.Path+"\n")
		s.withBody(w, r, &in, sum, func() {
			s.reply(w, r, func(ctx context.Context, now time.Time, ahead time.Duration) answer {
				toServer(&in, ahead)
				key := r.Header.Get(wire.Key)
				if key == "" {
					out, err := do(ctx, now, in)
					toClient(&out, ahead)
					return encoded(out, err)
				}
				return s.replays.do(ctx, now, key, fingerprint(sum.Sum(nil)), func() (answer, string, repeat) {
					return first(ctx, s, now, ahead, in, do, tell)
				})
			})
		})
	})
}

// first does a call that is done once, and returns its answer, and how to repeat that.
func first[In, Out any](
	ctx context.Context, s *Server, now time.Time, ahead time.Duration, in In,
	do func(context.Context, time.Time, In) (Out, error), tell func(In, Out) told[Out],
) (a answer, caller string, again repeat) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeout)
	defer stop()
	out, err := do(ctx, now, in)
	if err != nil {
		return encoded(nil, err), "", nil
	}
	t := tell(in, out)
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

// retell tells of a claim again: of those of its tasks that are still leased by
// it, as they are by now. They are read anew, since to keep them would take the
// room of their payloads. A claim that gave nothing may be done again.
func (s *Server) retell(in queue.Claim, out queue.Claimed) told[queue.Claimed] {
	if len(out.Tasks) == 0 {
		return told[queue.Claimed]{}
	}
	ids, tokens := make([]queue.ID, len(out.Tasks)), make([]queue.Token, len(out.Tasks))
	for i := range out.Tasks {
		ids[i], tokens[i] = out.Tasks[i].ID, out.Tasks[i].Lease.Token
	}
	next := out.Next
	return told[queue.Claimed]{"worker " + in.Worker, func(ctx context.Context, _ time.Time) (queue.Claimed, error) {
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

// recount tells again how many tasks a command has changed.
func recount(_ queue.Command, out wire.Changed) told[wire.Changed] {
	return told[wire.Changed]{again: func(context.Context, time.Time) (wire.Changed, error) { return out, nil }}
}
