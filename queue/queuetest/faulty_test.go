package queuetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/queue/queuetest"
	"github.com/stintgo/stint/queue/storetest"
)

// Without injected errors, a faulty store passes the conformance suite.
func TestFaulty_IsAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, cfg storetest.Config) storetest.Harness {
		t.Helper()
		store := memstore.New(memstore.Config(cfg))
		t.Cleanup(func() { store.Close() })
		plain := func(_ context.Context, _ string, do func() error) error { return do() }
		return storetest.Harness{Store: queuetest.Faulty(store, plain)}
	})
}

// calls makes one call of each method that can fail.
func calls(ctx context.Context, s queue.Store) map[string]error {
	now := time.Now()
	errs := make(map[string]error)
	_, errs["Submit"] = s.Submit(ctx, now, nil)
	_, errs["Claim"] = s.Claim(ctx, now, queue.Claim{Worker: "w", Max: 1, Lease: 1})
	_, errs["Settle"] = s.Settle(ctx, now, nil)
	_, errs["Heartbeat"] = s.Heartbeat(ctx, now, queue.Worker{Name: "w"}, nil)
	_, errs["Command"] = s.Command(ctx, now, queue.Command{Do: queue.OrderPause, All: true})
	_, errs["Find"] = s.Find(ctx, queue.Filter{}, queue.Page{})
	_, errs["Explain"] = s.Explain(ctx, now, queue.ID{})
	_, errs["Stats"] = s.Stats(ctx, now)
	errs["Configure"] = s.Configure(ctx, now, "", queue.Change{})
	errs["PauseQueue"] = s.PauseQueue(ctx, now, "", nil)
	_, errs["Schedules"] = s.Schedules(ctx)
	errs["Reschedule"] = s.Reschedule(ctx, now, queue.Reschedule{})
	_, errs["Settings"] = s.Settings(ctx)
	_, errs["Maintain"] = s.Maintain(ctx, now, 0)
	ended, end := context.WithCancel(ctx)
	end()
	errs["Watch"] = s.Watch(ended, func() {}, func(queue.Event) {})
	return errs
}

// Every call goes through around, with the name of its method.
func TestFaulty_AtAnyCall(t *testing.T) {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	var names []string
	faulty := queuetest.Faulty(store, func(_ context.Context, call string, _ func() error) error {
		names = append(names, call)
		return errTest
	})
	made := calls(t.Context(), faulty)
	for name, err := range made {
		if !errors.Is(err, errTest) || !slices.Contains(names, name) {
			t.Errorf("%s is answered %v", name, err)
		}
	}
	if len(names) != len(made) {
		t.Errorf("%v went through, want each of %d calls once", names, len(made))
	}
}

func TestFaulty_WhatCanGoWrong(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ids := queue.IDs{Random: func() uint64 { return 1 }}
	for name, c := range map[string]struct {
		around queuetest.Around
		fails  bool
		tasks  int // afterwards
	}{
		"before": {func(context.Context, string, func() error) error { return errTest }, true, 0},
		"after": {func(_ context.Context, _ string, do func() error) error {
			return errors.Join(do(), errTest)
		}, true, 1},
		"twice": {func(_ context.Context, _ string, do func() error) error {
			return errors.Join(do(), do())
		}, false, 1},
	} {
		store := memstore.New(memstore.Config{})
		task := queue.NewTask{ID: ids.New(now), Spec: queue.Spec{Kind: "k"}}
		receipts, err := queuetest.Faulty(store, c.around).Submit(t.Context(), now, []queue.NewTask{task})
		if (err != nil) != c.fails || (len(receipts) == 0) != c.fails {
			t.Errorf("%s: receipts %v, error %v", name, receipts, err)
		}
		found, err := store.Find(t.Context(), queue.Filter{}, queue.Page{})
		if err != nil || len(found) != c.tasks {
			t.Errorf("%s: %d tasks are there, want %d; error %v", name, len(found), c.tasks, err)
		}
		store.Close()
	}
}

// The seed decides for each method which calls fail, whatever other methods are called
// between.
func TestFlaky_IsDeterministic(t *testing.T) {
	fates := func(seed uint64, between int) (fates []string) {
		around := queuetest.Flaky(seed, 3)
		for range 100 {
			done := false
			err := around(t.Context(), "Claim", func() error { done = true; return nil })
			fates = append(fates, fmt.Sprint(done, err))
			for range between {
				_ = around(t.Context(), "Heartbeat", func() error { return nil })
			}
		}
		return fates
	}
	first := fates(1, 0)
	if !slices.Equal(first, fates(1, 3)) || slices.Equal(first, fates(2, 0)) {
		t.Error("the fates are not those of the seed")
	}
	for _, fate := range []string{
		fmt.Sprint(true, nil), fmt.Sprint(true, queuetest.ErrFault), fmt.Sprint(false, queuetest.ErrFault),
	} {
		if !slices.Contains(first, fate) {
			t.Errorf("no call has the fate %q", fate)
		}
	}
}

// A queue completes all tasks on a store that fails every third call.
func TestC6_FlakyStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(t, queue.Config{}, queuetest.Flaky(1, 3))
		queue.Kind[any]("k").Handle(q, func(context.Context, *queue.Job[any]) error { return nil })
		const tasks = 100
		for i := range tasks {
			o := queue.Options{Unique: fmt.Sprint(i), MaxCrashes: tasks} // a lost answer of a claim counts as a crash
			for {
				if _, err := queue.Kind[any]("k").Submit(t.Context(), q, nil, o); err == nil {
					break
				} else if !errors.Is(err, queue.ErrUnavailable) {
					t.Fatal(err)
				}
			}
		}
		stop := queuetest.Start(t, q, 4)
		queuetest.Sleep(10 * time.Minute) // long enough for the leases of lost claims to expire
		stop()
		st, err := q.Stats(t.Context())
		for errors.Is(err, queuetest.ErrFault) {
			st, err = q.Stats(t.Context())
		}
		if n := st.Queues["default"].States[queue.Succeeded]; err != nil || n != tasks {
			t.Errorf("states %v, error %v; want %d that have succeeded", st.Queues["default"].States, err, tasks)
		}
	})
}
