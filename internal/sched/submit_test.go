package sched //nolint:testpackage // when a worker is on its way cannot be seen from outside

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
)

// submitted submits a job in a goroutine. The job appends no to order when it runs, unless order is
// nil: jobs that may run at the same time have none.
func submitted(t *testing.T, e *Engine, tier int8, no int, order *[]int) *function {
	t.Helper()
	job := &function{fn: func(context.Context) {
		if order != nil {
			*order = append(*order, no)
		}
	}}
	job.Init(t.Context(), e)
	go job.Go(job, Ask{Weight: 1, Tier: tier})
	synctest.Wait()
	return job
}

// A slot that is free for a job waiting for its worker is not taken by an arriving job of
// a lower tier.
func TestB2_ArrivalDoesNotPassAJobThatWaitsForItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Limit: 1})
		var order []int
		e.waking.Store(true)
		submitted(t, e, 6, 1, &order)
		submitted(t, e, 0, 2, &order)
		if len(order) > 0 {
			t.Errorf("the jobs %v have run while the worker is on its way", order)
		}
		e.waking.Store(false)
		e.limits.change(func() {})
		synctest.Wait()
		if want := []int{1, 2}; !slices.Equal(order, want) {
			t.Errorf("the jobs ran in the order %v, want %v", order, want)
		}
	})
}

// Jobs that only wait for a worker, which is on its way, do not make an arrival find the queue full:
// what fills the queue has them started.
func TestA8_JobsThatWaitForAWorkerLeaveRoom(t *testing.T) {
	for _, kind := range []string{"job", "goroutine"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := New(Config{Limit: 8, Queue: 2, Refuse: true})
				e.waking.Store(true)
				jobs := []*function{submitted(t, e, 3, 1, nil)}
				if kind == "job" {
					jobs = append(jobs, submitted(t, e, 3, 2, nil))
				} else {
					go func() {
						permit := mustTake(t, e, Ask{Weight: 1, Tier: 3})
						permit.Release()
					}()
					synctest.Wait()
				}
				for no := range 3 {
					jobs = append(jobs, submitted(t, e, 3, 3+no, nil))
				}
				for i, job := range jobs {
					if !job.Settled() || job.Err() != nil {
						t.Errorf("job %d of %d has settled: %v, with error %v", i, len(jobs), job.Settled(), job.Err())
					}
				}
			})
		})
	}
}

// Room in the queue that is not given to a blocked submitter yet, because a worker is on
// its way, is not for a later arrival.
func TestA8_ArrivalDoesNotPassBlockedSubmitters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Limit: 1, Queue: 1})
		permit := mustTake(t, e, Ask{Weight: 1, Tier: 3})
		var order []int
		queued := submitted(t, e, 3, 1, &order)
		submitted(t, e, 3, 2, &order)
		e.waking.Store(true)
		queued.Cancel(nil)
		submitted(t, e, 3, 3, &order)
		if st := e.Stats(func() {}); st.Queued != 0 || st.Blocked != 2 {
			t.Errorf("%d jobs are queued and %d submitters wait for room, want 0 and 2", st.Queued, st.Blocked)
		}
		e.waking.Store(false)
		permit.Release()
		synctest.Wait()
		if want := []int{2, 3}; !slices.Equal(order, want) {
			t.Errorf("the jobs ran in the order %v, want %v", order, want)
		}
	})
}

// A scan does not copy what has arrived since it began: arrivals could keep it from
// ending.
func TestScan_ArrivalsOfARunAreLeftOut(t *testing.T) {
	e := New(Config{Limit: 1})
	q := &e.queue
	for i := range int64(3) {
		q.put(item{job: new(nothing), since: i}, 3, 1)
	}
	for at, want := range []bool{true, true, false} {
		if p, ok := q.pieceAt(&q.runs[3].run.Entry, uint64(at), 1); ok != want || ok && p.Value != int64(at) {
			t.Errorf("from place %d on there is %d (%v), want one: %v", at, p.Value, ok, want)
		}
	}
}

// A release that was deferred to the lock's holder counts: the second release of the slot
// panics in its own goroutine, also while the lock is held.
func TestB4_SecondReleaseOfOneSlotPanicsThoughTheLockIsHeld(t *testing.T) {
	e := New(Config{Limit: 2})
	permit := mustTake(t, e, Ask{Weight: 1, Tier: 3})
	again := permit
	e.Limits().Pause("so that a release takes the lock")
	e.lock()
	permit.Release() // is deferred
	panicked := make(chan bool)
	go func() {
		defer func() { panicked <- recover() != nil }()
		again.Release()
	}()
	for range 1000 { // so that it finds the lock taken
		runtime.Gosched()
	}
	e.unlock()
	if !<-panicked {
		t.Error("a slot was released twice")
	}
	if n := e.gate.running(); n != 0 {
		t.Errorf("%d slots are in use, want 0", n)
	}
}
