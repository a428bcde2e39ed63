//go:build linux

package isolate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/retry"
)

// newWorker returns a queue with handlers for commands and for misbehave.
func newWorker() *queue.Queue {
	q := queue.New(memstore.New(memstore.Config{}), queue.Config{
		Retry: retry.Policy{Base: time.Millisecond}, Poll: 10 * time.Millisecond,
	})
	queue.Kind[isolate.Command]("command").Handle(q, isolate.Commands(isolate.Config{}))
	misbehave.Handle(q)
	return q
}

// A worker survives tasks that kill their processes, and completes the others.
func TestC9_WorkerLives(t *testing.T) {
	q := newWorker()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- q.Run(ctx, stint.New(4, stint.Config{})) }()
	want := map[queue.ID]queue.State{}
	submit := func(state queue.State, kind string, args any) {
		receipt, err := queue.Kind[any](kind).Submit(ctx, q, args, queue.Options{MaxAttempts: 2})
		if err != nil {
			t.Fatal(err)
		}
		want[receipt.ID] = state
	}
	for range 3 {
		submit(queue.Dead, "misbehave", order{Do: "kill"})
		submit(queue.Dead, "misbehave", order{Do: "segfault"})
		submit(queue.Dead, "command", sh("kill -9 0"))
		submit(queue.Dead, "command", sh("exit 3"))
		submit(queue.Succeeded, "misbehave", order{})
		submit(queue.Succeeded, "command", sh("exit 0"))
	}
	for range 3000 {
		left, err := q.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if s := left.Queues["default"].States; s[queue.Dead]+s[queue.Succeeded] == len(want) {
			break
		}
		pause()
	}
	for id, state := range want {
		task, err := q.Get(ctx, id)
		if err != nil || task.State != state || task.Crashes != 0 || state == queue.Dead && task.Failures != 2 {
			t.Errorf("%s %s: %v after %d failures and %d crashes: %s (%v)",
				task.Kind, task.Payload, task.State, task.Failures, task.Crashes, task.Error, err)
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// work runs a worker whose tasks write their process IDs to the file args[0] and hang.
func work(args []string) {
	path := args[0]
	q := newWorker()
	ctx := context.Background()
	_, err := queue.Kind[order]("misbehave").Submit(ctx, q, order{Do: "hang", File: path + ".handler"}, queue.Options{})
	for range 3 {
		family := sh(`trap '' TERM HUP
			sh -c 'trap "" TERM; echo $$ >> "$0"; sleep 1000; sleep 1000' "$0" & echo $$ >> "$0"; wait; wait`)
		family.Args = append(family.Args, path)
		_, err2 := queue.Kind[isolate.Command]("command").Submit(ctx, q, family, queue.Options{})
		err = errors.Join(err, err2)
	}
	if err := errors.Join(err, q.Run(ctx, stint.New(4, stint.Config{}))); err != nil {
		panic(err)
	}
}

// When the worker is killed, all its groups end, whatever signals they ignore.
func TestC9_KilledWorkerTakesItsGroupsAlong(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := file(t)
	cmd := exec.CommandContext(t.Context(), self, argWorker, path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := append(awaitNumbers(t, path, 6), awaitNumbers(t, path+".handler", 1)...)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	wantGone(t, strings.Trim(fmt.Sprint(pids), "[]"), true)
}

// Sync in the process of a handler returns when the store has the checkpoint, or refuses it.
func TestC9_HandlerSyncs(t *testing.T) {
	// Without a Sync, a heartbeat comes after a second.
	q := queue.New(memstore.New(memstore.Config{MaxCheckpoint: 10}), queue.Config{})
	plain.Handle(q)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- q.Run(ctx, stint.New(2, stint.Config{})) }()
	path := file(t)
	receipt, err := queue.Kind[any]("plain").Submit(ctx, q, order{Do: "sync", File: path}, queue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stored := func(want string) {
		t.Helper()
		task, err := q.Get(ctx, receipt.ID)
		if err != nil || string(task.Checkpoint) != want {
			t.Errorf("after Sync, the store has the checkpoint %q, error %v, want %q", task.Checkpoint, err, want)
		}
	}
	if got := awaitFile(t, path); got != "<nil>" {
		t.Errorf("Sync returned %s", got)
	}
	stored("second")
	if err := q.Pause(ctx, receipt.ID); err != nil {
		t.Fatal(err)
	}
	if got := awaitFile(t, path+".end"); got != "<nil>" {
		t.Errorf("after the order to pause, Sync returned %s", got)
	}
	stored("third")

	large := file(t)
	tooMuch := order{Do: "sync too much", File: large}
	if _, err := queue.Kind[any]("plain").Submit(ctx, q, tooMuch, queue.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := awaitFile(t, large); got != "true true" {
		t.Errorf("ErrTooLarge from Sync, and as the cause of the context: %s", got)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
