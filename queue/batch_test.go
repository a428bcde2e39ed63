package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
)

// prepared submits a task that is prepared of a Spec.
func (r *rig) prepared(spec queue.Spec) queue.ID {
	r.Helper()
	task := r.Prepare(spec)
	r.accept(task)
	return task.ID
}

func (r *rig) accept(tasks ...queue.NewTask) {
	r.Helper()
	receipts, err := r.Submit(r.Context(), tasks...)
	if err != nil {
		r.Fatal(err)
	}
	for i, receipt := range receipts {
		if receipt.ID != tasks[i].ID {
			r.Fatalf("task %d: receipt %+v, want its own ID", i, receipt)
		}
	}
}

// A task whose unique name is taken is not in its batch. The follower waits for the earlier
// task if it comes after the new one.
func TestC12_BatchWithAUniqueTaskThatExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		again := queue.Spec{Kind: "part", Options: queue.Options{Unique: "u"}}
		earlier := r.prepared(again)
		for after, want := range map[bool]queue.State{false: queue.Waiting, true: queue.Held} {
			part, then := r.Prepare(again), r.Prepare(queue.Spec{Kind: "then"})
			if after {
				then.AfterAny = []queue.ID{part.ID}
			}
			receipts, err := r.SubmitBatch(t.Context(), then, part)
			if err != nil || receipts[0] != (queue.Receipt{ID: earlier, Existing: true}) {
				t.Fatal(receipts, err)
			}
			if got, err := r.Get(t.Context(), then.ID); err != nil || got.State != want {
				t.Errorf("AfterAny %t: the follower is %s, error %v, want %s", after, got.State, err, want)
			}
		}
	})
}

// The task after a batch starts when all others are finished, whatever became of
// them; those that a task of the batch adds as well.
func TestC12_BatchThenItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, queue.Config{})
		var mu sync.Mutex
		var order []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
		}
		queue.Kind[int]("part").Handle(r.Queue, func(ctx context.Context, j *queue.Job[int]) error {
			time.Sleep(time.Duration(j.Args) * time.Second)
			note(fmt.Sprint("part ", j.Args))
			if j.Args == 3 {
				_, err := queue.Kind[int]("part").Submit(ctx, r.Queue, 7, queue.Options{Batch: j.Batch})
				return err
			}
			if j.Args == 2 {
				return errors.New("this one fails")
			}
			return nil
		})
		queue.Kind[any]("then").Handle(r.Queue, func(context.Context, *queue.Job[any]) error { note("then"); return nil })
		r.start()
		var parts []queue.NewTask
		for i := 1; i <= 4; i++ {
			part, err := queue.Kind[int]("part").Prepare(r.Queue, i, queue.Options{MaxAttempts: 1})
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, part)
		}
		then := r.Prepare(queue.Spec{Kind: "then"})
		receipts, err := r.SubmitBatch(t.Context(), then, parts...)
		if err != nil || len(receipts) != len(parts) {
			t.Fatalf("%d receipts, error %v", len(receipts), err)
		}
		time.Sleep(4500 * time.Millisecond)
		held := r.is(then.ID, queue.Held)
		if len(held.Holds) != 1 || held.Holds[0].What != then.ID.String() {
			t.Errorf("held by %+v, want by the batch", held.Holds)
		}
		task, err := r.Wait(t.Context(), then.ID)
		if err != nil || task.State != queue.Succeeded {
			t.Errorf("the task after the batch is %s, error %v", task.State, err)
		}
		if want := []string{"part 1", "part 2", "part 3", "part 4", "part 7", "then"}; !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
		counts, err := r.Count(t.Context(), queue.Filter{Batch: then.ID})
		if err != nil || counts[queue.Succeeded] != 4 || counts[queue.Dead] != 1 || len(counts) != 2 {
			t.Errorf("counts %v, error %v; want 4 that succeeded and a dead one", counts, err)
		}
		r.end()
	})
}

// A batch is accepted as a whole or not at all, and submitting it again changes
// nothing.
func TestC12_BatchIsOneStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, queue.Config{})
		then, good := r.Prepare(queue.Spec{Kind: "then"}), r.Prepare(queue.Spec{Kind: "part"})
		nameless := r.Prepare(queue.Spec{})
		if _, err := r.SubmitBatch(t.Context(), then, good, nameless); !errors.Is(err, queue.ErrInvalid) {
			t.Fatalf("error %v, want ErrInvalid", err)
		}
		if counts, err := r.Count(t.Context(), queue.Filter{}); err != nil || len(counts) != 0 {
			t.Fatalf("counts %v, error %v; want none", counts, err)
		}
		for range 2 {
			receipts, err := r.SubmitBatch(t.Context(), then, good)
			if err != nil || !slices.Equal(receipts, []queue.Receipt{{ID: good.ID}}) {
				t.Errorf("receipts %+v, error %v", receipts, err)
			}
		}
		if counts, err := r.Count(t.Context(), queue.Filter{}); err != nil || counts[queue.Waiting]+counts[queue.Held] != 2 {
			t.Errorf("counts %v, error %v; want two", counts, err)
		}
		r.is(good.ID, queue.Waiting)
		r.is(then.ID, queue.Held)
	})
}

// A batch of nothing is finished.
func TestC12_EmptyBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		then := r.Prepare(queue.Spec{Kind: "then"})
		if receipts, err := r.SubmitBatch(t.Context(), then); err != nil || len(receipts) != 0 {
			t.Fatalf("receipts %v, error %v", receipts, err)
		}
		r.is(then.ID, queue.Waiting)
	})
}

func TestC12_BatchesThatMakeNoSense(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		other := r.NewID()
		part := r.Prepare(queue.Spec{Kind: "part"})
		for name, then := range map[string]queue.Spec{
			"unique":        {Kind: "then", Options: queue.Options{Unique: "u"}},
			"after another": {Kind: "then", Options: queue.Options{AfterBatch: other}},
		} {
			if _, err := r.SubmitBatch(t.Context(), r.Prepare(then), part); !errors.Is(err, queue.ErrInvalid) {
				t.Errorf("%s: error %v, want ErrInvalid", name, err)
			}
		}
		part.Batch = other
		then := r.Prepare(queue.Spec{Kind: "then"})
		if _, err := r.SubmitBatch(t.Context(), then, part); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("a task of another batch: error %v, want ErrInvalid", err)
		}
	})
}

// Tasks of one call that would wait for each other for ever are refused, and no
// others: checked against a walk along what each waits for.
func TestC12_CirclesAreRefused(t *testing.T) {
	rnd := seeded.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		refused := 0
		const rounds = 2000
		for range rounds {
			batches := []queue.ID{{}, {}, r.NewID(), r.NewID(), r.NewID()}
			tasks := make([]queue.NewTask, 1+rnd.IntN(7))
			for i := range tasks {
				spec := queue.Spec{Kind: "k", Options: queue.Options{Batch: batches[rnd.IntN(5)], AfterBatch: batches[rnd.IntN(5)]}}
				if spec.Batch == spec.AfterBatch {
					spec.Batch = queue.ID{} // a circle of one; the store refuses it
				}
				spec.Queue, spec.Group = []string{"", queue.DefaultQueue, "other"}[rnd.IntN(3)], []string{"", "", "g"}[rnd.IntN(3)]
				for j := range i {
					if rnd.IntN(4) == 0 {
						spec.After = append(spec.After, tasks[j].ID)
					} else if rnd.IntN(8) == 0 {
						spec.AfterAny = append(spec.AfterAny, tasks[j].ID)
					}
				}
				tasks[i] = r.Prepare(spec)
			}
			_, err := r.Submit(t.Context(), tasks...)
			want := false
			for i := range tasks {
				want = want || reaches(tasks, i, i, map[int]bool{})
			}
			if want != (err != nil) || want && !strings.Contains(err.Error(), "would never start") {
				t.Fatalf("error %v, want one: %v; tasks %+v", err, want, tasks)
			}
			if want {
				refused++
			}
		}
		if refused == 0 || refused == rounds {
			t.Errorf("%d of %d were refused: this shows nothing", refused, rounds)
		}
	})
}

// reaches reports whether task i waits for the task to, by whatever way.
func reaches(tasks []queue.NewTask, i, to int, seen map[int]bool) bool {
	for j := range tasks {
		behind := j < i && tasks[i].Group != "" && tasks[i].Group == tasks[j].Group &&
			(tasks[i].Queue == "other") == (tasks[j].Queue == "other")
		waits := slices.Contains(tasks[i].After, tasks[j].ID) || slices.Contains(tasks[i].AfterAny, tasks[j].ID) ||
			!tasks[i].AfterBatch.IsZero() && tasks[i].AfterBatch == tasks[j].Batch || behind
		if !waits || seen[j] {
			continue
		}
		if seen[j] = true; j == to || reaches(tasks, j, to, seen) {
			return true
		}
	}
	return false
}
