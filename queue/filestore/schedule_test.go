package filestore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cron"
	"github.com/stintgo/stint/queue/filestore"
)

// A machine that loses its power again and again, at any time, submits each tick
// of a schedule once: neither does a tick get lost with its task, nor is there a
// task whose tick comes again.
func TestC8_TicksSurviveCrashes(t *testing.T) {
	const rounds = 40
	rnd := seeded.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		disk := newCrashable(vfs.NewCrashableMem())
		begin := time.Now().UTC()
		s := queue.Schedule{Name: "s", Cron: "*/3 * * * *", Missed: queue.MissedAll, Task: queue.Spec{Kind: "k"}}
		for round := range rounds {
			store, err := filestore.OpenIn(disk, "store", filestore.Config{})
			if err != nil {
				t.Fatal(err)
			}
			q := queue.New(store, queue.Config{Poll: time.Hour})
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- q.Run(ctx, stint.New(1, stint.Config{})) }()
			if err := q.Schedule(ctx, s); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Minute))).Truncate(time.Minute)) // often at a tick
			if round == rounds-1 {
				time.Sleep(30 * time.Second) // not at one
			}
			left := disk.crash()
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if round == rounds-1 {
				checkTicks(t, q, s, begin)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			disk = left
		}
	})
}

// checkTicks checks that there is one task for each tick from a time on.
func checkTicks(t *testing.T, q *queue.Queue, s queue.Schedule, from time.Time) {
	t.Helper()
	expr, err := cron.Parse(s.Cron)
	if err != nil {
		t.Fatal(err)
	}
	want := expr.Between(from, time.Now(), 1e6)
	var got []time.Time
	for task, err := range q.Find(t.Context(), queue.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		tick, _ := task.Tick()
		got = append(got, tick)
	}
	if !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("%d tasks are of the ticks\n%v, want %d\n%v", len(got), got, len(want), want)
	}
}
