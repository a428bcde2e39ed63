package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// calls are the calls of a store with the types of package wire.
type calls struct{ store queue.Store }

func (c calls) submit(ctx context.Context, now time.Time, in wire.SubmitCall) (wire.Receipts, error) {
	receipts, err := c.store.Submit(ctx, now, in.Tasks)
	return wire.Receipts{Receipts: receipts}, err
}

func (c calls) claim(ctx context.Context, now time.Time, in queue.Claim) (queue.Claimed, error) {
	if in.Max > wire.ClaimMost {
		return queue.Claimed{}, fmt.Errorf("%w: a claim of %d tasks: claim at most %d at a time", queue.ErrInvalid, in.Max,
			wire.ClaimMost)
	}
	in.Remote = true // a client outlives the store's process
	in.Bytes = bounded(in.Bytes)
	return c.store.Claim(ctx, now, in)
}

func (c calls) settle(ctx context.Context, now time.Time, in wire.SettleCall) (wire.Settled, error) {
	errs, err := c.store.Settle(ctx, now, in.Outcomes)
	out := wire.Settled{Answers: make([]*wire.Problem, len(errs))}
	for i, err := range errs {
		if err != nil {
			out.Answers[i] = wire.ProblemOf(err)
		}
	}
	return out, err
}

func (c calls) heartbeat(ctx context.Context, now time.Time, in wire.HeartbeatCall) (wire.Answers, error) {
	answers, err := c.store.Heartbeat(ctx, now, in.Worker, in.Heartbeats)
	return wire.Answers{Answers: answers}, err
}

func (c calls) command(ctx context.Context, now time.Time, in queue.Command) (wire.Changed, error) {
	n, err := c.store.Command(ctx, now, in)
	if n > 0 && errors.Is(err, queue.ErrUnavailable) && !errors.Is(err, wire.ErrInPart) {
		err = fmt.Errorf("%w: %d tasks were changed, and then: %w", wire.ErrInPart, n, err)
	}
	return wire.Changed{Changed: n}, err
}

func (c calls) find(ctx context.Context, _ time.Time, in wire.FindCall) (wire.Tasks, error) {
	if in.Page.Limit > wire.PageMost {
		return wire.Tasks{}, fmt.Errorf("%w: a page of %d tasks: ask for at most %d at a time", queue.ErrInvalid,
			in.Page.Limit, wire.PageMost)
	}
	in.Page.Bytes = bounded(in.Page.Bytes)
	tasks, err := c.store.Find(ctx, in.Filter, in.Page)
	if tasks == nil {
		tasks = []queue.Task{} // an empty page is [] in JSON
	}
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

func (c calls) explain(ctx context.Context, now time.Time, in url.Values) (wire.Reasons, error) {
	id, err := queue.ParseID(in.Get(wire.QueryID))
	if err != nil {
		return wire.Reasons{}, err
	}
	reasons, err := c.store.Explain(ctx, now, id)
	return wire.Reasons{Reasons: reasons}, err
}

func (c calls) stats(ctx context.Context, now time.Time, _ url.Values) (queue.Stats, error) {
	return c.store.Stats(ctx, now)
}

func (c calls) configure(ctx context.Context, now time.Time, in wire.ConfigureCall) (struct{}, error) {
	return struct{}{}, c.store.Configure(ctx, now, in.Queue, in.Change)
}

func (c calls) pause(ctx context.Context, now time.Time, in wire.PauseCall) (struct{}, error) {
	return struct{}{}, c.store.PauseQueue(ctx, now, in.Queue, in.Pause)
}

func (c calls) settings(ctx context.Context, _ time.Time, _ url.Values) (wire.AllSettings, error) {
	all, err := c.store.Settings(ctx)
	return wire.AllSettings{Settings: all}, err
}

func (c calls) schedules(ctx context.Context, _ time.Time, _ url.Values) (wire.AllSchedules, error) {
	all, err := c.store.Schedules(ctx)
	return wire.AllSchedules{Schedules: all}, err
}

func (c calls) reschedule(ctx context.Context, now time.Time, in queue.Reschedule) (struct{}, error) {
	return struct{}{}, c.store.Reschedule(ctx, now, in)
}

func (c calls) maintain(ctx context.Context, now time.Time, in wire.MaintainCall) (wire.Maintained, error) {
	next, err := c.store.Maintain(ctx, now, in.Limit)
	return wire.Maintained{Next: next}, err
}

// replayClaim answers a repeated claim with those tasks of the first that are still
// leased by it, in their present state. It reads them from the store, since keeping them
// would keep their payloads in memory. A claim that returned no tasks may be executed
// again.
func (c calls) replayClaim(in queue.Claim, out queue.Claimed) result[queue.Claimed] {
	if len(out.Tasks) == 0 {
		return result[queue.Claimed]{}
	}
	ids, tokens := make([]queue.ID, len(out.Tasks)), make([]queue.Token, len(out.Tasks))
	for i := range out.Tasks {
		ids[i], tokens[i] = out.Tasks[i].ID, out.Tasks[i].Lease.Token
	}
	next := out.Next
	return result[queue.Claimed]{"worker " + in.Worker, func(ctx context.Context, _ time.Time) (queue.Claimed, error) {
		found, err := c.store.Find(ctx, queue.Filter{IDs: ids}, queue.Page{Limit: len(ids)})
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
