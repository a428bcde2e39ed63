package run

import (
	"context"
	"fmt"
	"runtime/debug"

	stint "github.com/stintgo/stint"
)

// submit queues a job at its tier and for its key. It blocks while the look-ahead is
// full.
func (r *Run) submit(j *job) {
	r.jobs.Add(1)
	r.enqueue(j)
}

// enqueue submits a job to the scheduler. When the run stops, the queue is not emptied:
// the remaining jobs start, see that the run has stopped and return at once, so that all
// jobs end in the same way.
func (r *Run) enqueue(j *job) {
	view := r.sched.At(j.priority).Key(j.key)
	stint.Go(context.Background(), view, func(context.Context) (struct{}, error) {
		r.work(j)
		return struct{}{}, nil
	})
}

// work makes one attempt of a job, on a slot of the scheduler.
func (r *Run) work(j *job) {
	defer func() {
		// The scheduler would turn a panic into the error of a future that is never read,
		// and the run would wait for the job forever.
		if v := recover(); v != nil {
			r.stop.fail(fmt.Errorf("internal error: %v\n%s", v, debug.Stack()))
			r.jobs.Done()
		}
	}()
	if err := r.pacer.wait(r.stop.starting, j.priority); err != nil {
		r.stop.fail(err) // no effect if the run is stopping already
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
