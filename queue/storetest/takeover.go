package storetest

import (
	"context"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/reference"
)

// Takeover is a change of the process that keeps a store, in the middle of a call. It ends
// the workers' registrations and all else that is only in memory, as a crash does.
type Takeover struct {
	// Made says that the call took effect at the former process.
	Made bool
	// Answered says that the former process answered the call. If it did not, the caller
	// asked the next process again.
	Answered bool
	// Started has the IDs and tokens of the tasks that a claim started if it was Made and
	// not Answered: they run, and no worker has received them.
	Started []queue.Task
	// Progress is the progress of running tasks at the next process: it need not survive.
	Progress map[queue.ID]queue.Progress
}

// taken is the store that is obviously right, when the store under test is one that other
// processes take over. It goes through the takeovers of each call.
type taken struct {
	*reference.Store
	takeovers func() []Takeover // since the last call; nil if there are none
}

// follow makes a call that the other store has just answered. It repeats what happened: the call
// is made at each process where it took effect, and the answer is that of the last one.
func follow[T any](r *taken, call func(*reference.Store, *Takeover) (T, error)) (answer T, err error) {
	answered := false
	if r.takeovers != nil {
		for _, o := range r.takeovers() {
			if answered = o.Answered; o.Made {
				if answer, err = call(r.Store, &o); err != nil {
					return answer, err
				}
			}
			r.Store = r.Reopen()
			for id, progress := range o.Progress {
				r.SetProgress(id, progress)
			}
		}
	}
	if answered {
		return answer, err
	}
	return call(r.Store, nil)
}

// followError is follow for calls that return only an error.
func followError(r *taken, call func(*reference.Store) error) error {
	_, err := follow(r, func(s *reference.Store, _ *Takeover) (struct{}, error) { return struct{}{}, call(s) })
	return err
}

// catchUp goes through the takeovers since the last call.
func (r *taken) catchUp() {
	_ = followError(r, func(*reference.Store) error { return nil })
}

// reopen ends the store as the end of its process does.
func (r *taken) reopen() {
	r.catchUp()
	r.Store = r.Reopen()
}

func (r *taken) All() []queue.Task {
	r.catchUp()
	return r.Store.All()
}

func (r *taken) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	return follow(r, func(s *reference.Store, _ *Takeover) ([]queue.Receipt, error) { return s.Submit(ctx, now, tasks) })
}

// Follow starts the tasks that the other store has started; see [reference.Store.Follow].
func (r *taken) Follow(now time.Time, c queue.Claim, got queue.Claimed) error {
	_, err := follow(r, func(s *reference.Store, o *Takeover) (struct{}, error) {
		if o != nil && !o.Answered {
			return struct{}{}, s.FollowStarts(now, c, o.Started)
		}
		return struct{}{}, s.Follow(now, c, got)
	})
	return err
}

func (r *taken) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	return follow(r, func(s *reference.Store, _ *Takeover) ([]error, error) {
		s.Finished(outcomesMost + 1)
		return s.Settle(ctx, now, outcomes)
	})
}

func (r *taken) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	return follow(r, func(s *reference.Store, _ *Takeover) ([]queue.Answer, error) {
		return s.Heartbeat(ctx, now, w, heartbeats)
	})
}

func (r *taken) Command(ctx context.Context, now time.Time, c queue.Command) (int, error) {
	return follow(r, func(s *reference.Store, _ *Takeover) (int, error) { return s.Command(ctx, now, c) })
}

func (r *taken) Maintain(ctx context.Context, now time.Time, limit int) (time.Time, error) {
	return follow(r, func(s *reference.Store, _ *Takeover) (time.Time, error) { return s.Maintain(ctx, now, limit) })
}

func (r *taken) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	return followError(r, func(s *reference.Store) error { return s.Configure(ctx, now, name, c) })
}

func (r *taken) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	return followError(r, func(s *reference.Store) error { return s.PauseQueue(ctx, now, name, p) })
}

func (r *taken) Reschedule(ctx context.Context, now time.Time, c queue.Reschedule) error {
	return followError(r, func(s *reference.Store) error { return s.Reschedule(ctx, now, c) })
}

func (r *taken) Find(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	return follow(r, func(s *reference.Store, _ *Takeover) ([]queue.Task, error) { return s.Find(ctx, f, p) })
}

func (r *taken) Explain(ctx context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	return follow(r, func(s *reference.Store, _ *Takeover) ([]queue.Reason, error) { return s.Explain(ctx, now, id) })
}

func (r *taken) Stats(ctx context.Context, now time.Time) (queue.Stats, error) {
	return follow(r, func(s *reference.Store, _ *Takeover) (queue.Stats, error) { return s.Stats(ctx, now) })
}

func (r *taken) Settings(ctx context.Context) (map[string]queue.Configured, error) {
	return follow(r, func(s *reference.Store, _ *Takeover) (map[string]queue.Configured, error) { return s.Settings(ctx) })
}

func (r *taken) Schedules(ctx context.Context) ([]queue.ScheduleState, error) {
	return follow(r, func(s *reference.Store, _ *Takeover) ([]queue.ScheduleState, error) { return s.Schedules(ctx) })
}
