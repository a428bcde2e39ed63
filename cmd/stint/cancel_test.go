//go:build linux

package main_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"

	sched "github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// cancel --wait counts the tasks that were cancelled, and not those that have succeeded in spite of
// the order.
func TestC4_CancelWaitOfTasksThatSucceed(t *testing.T) {
	store := memstore.New(memstore.Config{})
	q := queue.New(store, queue.Config{})
	begun := make(chan struct{})
	const stubborn, obedient queue.Kind[int] = "stubborn", "obedient"
	for kind, verdict := range map[queue.Kind[int]]func(context.Context) error{
		stubborn: func(context.Context) error { return nil },
		obedient: context.Cause,
	} {
		kind.Handle(q, func(ctx context.Context, _ *queue.Job[int]) error {
			begun <- struct{}{}
			<-ctx.Done()
			return verdict(ctx)
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = q.Run(ctx, sched.New(3, sched.Config{})) })
	defer running.Wait()
	defer stop()
	s := server.New(store, server.Config{})
	front := httptest.NewServer(s)
	defer front.Close()
	defer s.Close()

	submit := func(kind queue.Kind[int]) string {
		t.Helper()
		task, err := kind.Submit(ctx, q, 1, queue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		<-begun
		return task.ID.String()
	}
	cancel := func(ids ...string) result {
		t.Helper()
		return stint(t, "", append([]string{"cancel", "--wait", "--server", front.URL}, ids...)...)
	}
	first, second, third := submit(stubborn), submit(stubborn), submit(obedient)
	cancel(first).want(t, "0 tasks cancelled\n", "task "+first+" cannot be cancelled: its state is succeeded\n", 1)
	cancel(second, third).want(t, "1 task cancelled\n", "task "+second+" cannot be cancelled: its state is succeeded\n", 0)
}
