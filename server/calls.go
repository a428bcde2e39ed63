package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// routes returns the handler of all calls of a store.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+wire.Submit, call(s, s.submit))
	mux.Handle("POST "+wire.Claim, once(s, s.claim, s.replayClaim))
	mux.Handle("POST "+wire.Settle, call(s, s.settle))
	mux.Handle("POST "+wire.Heartbeat, call(s, s.heartbeat))
	mux.Handle("POST "+wire.Command, once(s, s.command, replayCommand))
	mux.Handle("POST "+wire.Find, call(s, s.find))
	mux.Handle("POST "+wire.Configure, call(s, s.configure))
	mux.Handle("POST "+wire.Pause, call(s, s.pause))
	mux.Handle("POST "+wire.Reschedule, call(s, s.reschedule))
	mux.Handle("POST "+wire.Maintain, call(s, s.maintain))
	mux.Handle("POST "+wire.Jobs, call(s, s.jobs))
	mux.Handle("GET "+wire.Explain, ask(s, s.explain))
	mux.Handle("GET "+wire.Stats, ask(s, s.stats))
	mux.Handle("GET "+wire.Settings, ask(s, s.settings))
	mux.Handle("GET "+wire.Schedules, ask(s, s.schedules))
	mux.Handle("GET "+wire.Ready, s.streams.bounded(s.streams.ready))
	mux.Handle("GET "+wire.Watch, s.streams.bounded(s.streams.watch))
	mux.HandleFunc("GET "+wire.Log, s.logs.serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if method := methodOf(mux, r); method != "" {
			w.Header().Set("Allow", method)
			s.to.refuse(w, http.StatusMethodNotAllowed, "method",
				fmt.Sprintf("the call %.200q is made by %s, and not by %s", r.URL.Path, method, r.Method))
			return
		}
		s.to.refuse(w, http.StatusNotFound, "unknown_call",
			fmt.Sprintf("no call %s %.200q: give the address of the server without a path; or, if the client and the server "+
				"are of different versions, update the older one", r.Method, r.URL.Path))
	})
	return mux
}

// methodOf returns the method of a call that a request has the path of, or "".
func methodOf(mux *http.ServeMux, r *http.Request) string {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "/" {
			return method
		}
	}
	return ""
}

// call serves a call that has a body.
func call[In, Out any](s *Server, do func(context.Context, time.Time, In) (Out, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in In
		ahead := s.arrive(w, r)
		s.bodies.decoded(w, r, &in, nil, func() {
			s.reply(w, r, func(ctx context.Context, now time.Time) answer {
				toServer(&in, ahead)
				out, err := do(ctx, now, in)
				toClient(&out, ahead)
				return encoded(out, err)
			})
		})
	})
}

// ask serves a call whose parameters, if it has any, are in its URL.
func ask[Out any](s *Server, do func(context.Context, time.Time, url.Values) (Out, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ahead := s.arrive(w, r)
		s.reply(w, r, func(ctx context.Context, now time.Time) answer {
			out, err := do(ctx, now, r.URL.Query())
			toClient(&out, ahead)
			return encoded(out, err)
		})
	})
}

// arrive returns how far the server's clock is ahead of the client's when a call arrives, before
// its body, which may take long: that time is no difference of the clocks. The answer states
// the arrival by the client's clock.
func (s *Server) arrive(w http.ResponseWriter, r *http.Request) (ahead time.Duration) {
	now := clock.NowIn(r.Context(), s.cfg.Clock)
	ahead = aheadOf(r, now)
	w.Header().Set(wire.Now, now.Add(-ahead).Format(time.RFC3339Nano))
	return ahead
}

// reply executes a call, and sends its answer.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, do func(ctx context.Context, now time.Time) answer) {
	a := do(r.Context(), clock.NowIn(r.Context(), s.cfg.Clock))
	if r.Context().Err() != nil {
		s.to.send(w, a) // the client has left, and the call's context ended with it: no error to log
		return
	}
	s.to.write(w, a)
}

func (s *Server) submit(ctx context.Context, now time.Time, in wire.SubmitCall) (wire.Receipts, error) {
	receipts, err := s.store.Submit(ctx, now, in.Tasks)
	return wire.Receipts{Receipts: receipts}, err
}

func (s *Server) claim(ctx context.Context, now time.Time, in queue.Claim) (queue.Claimed, error) {
	if in.Max > wire.ClaimMost {
		return queue.Claimed{}, fmt.Errorf("%w: a claim of %d tasks: claim at most %d at a time", queue.ErrInvalid, in.Max,
			wire.ClaimMost)
	}
	in.Remote = true // a client outlives the store's process
	in.Bytes = bounded(in.Bytes)
	return s.store.Claim(ctx, now, in)
}

func (s *Server) settle(ctx context.Context, now time.Time, in wire.SettleCall) (wire.Settled, error) {
	errs, err := s.store.Settle(ctx, now, in.Outcomes)
	out := wire.Settled{Answers: make([]*wire.Problem, len(errs))}
	for i, err := range errs {
		if err != nil {
			out.Answers[i] = wire.ProblemOf(err)
		}
	}
	return out, err
}

func (s *Server) heartbeat(ctx context.Context, now time.Time, in wire.HeartbeatCall) (wire.Answers, error) {
	answers, err := s.store.Heartbeat(ctx, now, in.Worker, in.Heartbeats)
	return wire.Answers{Answers: answers}, err
}

func (s *Server) command(ctx context.Context, now time.Time, in queue.Command) (wire.Changed, error) {
	n, err := s.store.Command(ctx, now, in)
	return wire.Changed{Changed: n}, err
}

func (s *Server) find(ctx context.Context, _ time.Time, in wire.FindCall) (wire.Tasks, error) {
	if in.Page.Limit > wire.PageMost {
		return wire.Tasks{}, fmt.Errorf("%w: a page of %d tasks: ask for at most %d at a time", queue.ErrInvalid,
			in.Page.Limit, wire.PageMost)
	}
	in.Page.Bytes = bounded(in.Page.Bytes)
	tasks, err := s.store.Find(ctx, in.Filter, in.Page)
	size := 0
	for i := range tasks {
		size += tasks[i].Size()
	}
	return wire.Tasks{Tasks: tasks, More: size >= in.Page.Bytes}, err
}

// bounded returns the limit for the size of an answer whose caller asks for at most
// bytes; 0 asks for no limit of its own.
func bounded(bytes int) int {
	if bytes <= 0 {
		return wire.BytesMost
	}
	return min(bytes, wire.BytesMost)
}

func (s *Server) explain(ctx context.Context, now time.Time, in url.Values) (wire.Reasons, error) {
	id, err := queue.ParseID(in.Get(wire.QueryID))
	if err != nil {
		return wire.Reasons{}, err
	}
	reasons, err := s.store.Explain(ctx, now, id)
	return wire.Reasons{Reasons: reasons}, err
}

func (s *Server) stats(ctx context.Context, now time.Time, _ url.Values) (queue.Stats, error) {
	return s.store.Stats(ctx, now)
}

func (s *Server) configure(ctx context.Context, now time.Time, in wire.ConfigureCall) (struct{}, error) {
	return struct{}{}, s.store.Configure(ctx, now, in.Queue, in.Change)
}

func (s *Server) pause(ctx context.Context, now time.Time, in wire.PauseCall) (struct{}, error) {
	return struct{}{}, s.store.PauseQueue(ctx, now, in.Queue, in.Pause)
}

func (s *Server) settings(ctx context.Context, _ time.Time, _ url.Values) (wire.AllSettings, error) {
	all, err := s.store.Settings(ctx)
	return wire.AllSettings{Settings: all}, err
}

func (s *Server) schedules(ctx context.Context, _ time.Time, _ url.Values) (wire.AllSchedules, error) {
	all, err := s.store.Schedules(ctx)
	return wire.AllSchedules{Schedules: all}, err
}

func (s *Server) reschedule(ctx context.Context, now time.Time, in queue.Reschedule) (struct{}, error) {
	return struct{}{}, s.store.Reschedule(ctx, now, in)
}

func (s *Server) maintain(ctx context.Context, now time.Time, in wire.MaintainCall) (wire.Maintained, error) {
	next, err := s.store.Maintain(ctx, now, in.Limit)
	return wire.Maintained{Next: next}, err
}
