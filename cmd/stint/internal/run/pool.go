package run

import (
	"context"
	"fmt"
	"runtime/debug"

	stint "github.com/stintgo/stint"
)

// submit queues a job at its tier and for its key. It blocks while as many
// wait as the look-ahead allows.
func (r *Run) submit(j *job) {
	r.jobs.Add(1)
	r.enqueue(j)
}

// enqueue gives a job to the scheduler. The queue is not emptied when the run
// stops: its jobs then find that nothing is to start, which is done in no time,
// and there is one way for a job to end.
func (r *Run) enqueue(j *job) {
	view := r.sched.At(j.priority).Key(j.key)
	stint.Go(context.Background(), view, func(context.Context) (struct{}, error) {
		r.work(j)
		return struct{}{}, nil
	})
}

// work is one attempt of a job, on a slot of the scheduler.
func (r *Run) work(j *job) {
	defer func() {
		// The scheduler would turn a panic into a future's error, which nobody
		// looks at, and the run would wait for the job for ever.
		if v := recover(); v != nil {
			r.stop.fail(fmt.Errorf("internal error: %v\n%s", v, debug.Stack()))
			r.jobs.Done()
		}
	}()
	if err := r.pass(j); err != nil {
		r.stop.fail(err) // unless it is that the run stops anyway
		r.jobs.Done()
		return
	}
	slot := r.slots.take()
	r.cfg.Meter.Start()
	again := r.runAttempt(j, slot)
	r.cfg.Meter.Stop()
	r.slots.give(slot)
	if !again {
		r.jobs.Done()
	}
}

// pass waits for all that holds a start back besides the slot. The rate comes
// last: its token is spent at once.
func (r *Run) pass(j *job) error {
	ctx := r.stop.starting
	for _, g := range r.cfg.Gates {
		if err := g.Wait(ctx); err != nil {
			return err
		}
	}
	if r.limiter != nil {
		return r.limiter.At(j.priority).Wait(ctx, 1)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
