package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
)

// idle never looks by chance, so what happens in time was foreseen.
func idle() queue.Config { return queue.Config{Poll: 30 * 24 * time.Hour} }

func (r *rig) schedule(s queue.Schedule) queue.ScheduleState {
	r.Helper()
	if s.Name == "" {
		s.Name = "s"
	}
	if s.Task.Kind == "" {
		s.Task.Kind = "k"
	}
	if err := r.Schedule(r.Context(), s); err != nil {
		r.Fatal(err)
	}
	return r.scheduled(s.Name)
}

func (r *rig) scheduled(name string) queue.ScheduleState {
	r.Helper()
	synctest.Wait()
	all, err := r.Schedules(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s queue.ScheduleState) bool { return s.Name == name })
	if i < 0 {
		r.Fatalf("there is no schedule %s: %v", name, all)
	}
	return all[i]
}

// ticks are those that tasks of a schedule were submitted for, in the order of
// the tasks' IDs, which is that of their submission if one process did it.
func (r *rig) ticks(name string) (ticks []time.Time) {
	r.Helper()
	synctest.Wait()
	for task, err := range r.Find(r.Context(), queue.Filter{Labels: map[string]string{queue.LabelSchedule: name}}) {
		if err != nil {
			r.Fatal(err)
		}
		tick, ok := task.Tick()
		if !ok {
			r.Fatalf("task %s has no tick: %v", task.ID, task.Labels)
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

func (r *rig) ticked(name string, want ...time.Time) {
	r.Helper()
	if got := r.ticks(name); !equal(got, want) {
		r.Fatalf("the ticks are\n%v, want\n%v", got, want)
	}
}

// newTickRig makes a rig with a handler of kind k that does nothing. The time of
// its bubble begins with the year 2000.
func newTickRig(t *testing.T, cfg queue.Config) *rig {
	t.Helper()
	r := newRig(t, 4, cfg)
	queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error { return nil })
	return r
}

func hours(n ...int) (at []time.Time) {
	for _, h := range n {
		at = append(at, time.Date(2000, 1, 1, h, 0, 0, 0, time.UTC))
	}
	return at
}

// Tasks are submitted when their tick comes, not at the next poll,
// and their handlers learn which tick that is.
func TestC8_ScheduleTicksOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, idle())
		berlin := in(t, "Europe/Berlin")
		type run struct {
			at   time.Time
			tick string
		}
		var mu sync.Mutex
		var runs []run
		queue.Kind[string]("report").Handle(r.Queue, func(_ context.Context, j *queue.Job[string]) error {
			tick, ok := j.Tick()
			if !ok || j.Args != "all" || j.Labels["team"] != "a" {
				t.Errorf("the job is %+v", j)
			}
			mu.Lock()
			defer mu.Unlock()
			runs = append(runs, run{time.Now().In(berlin), tick.Format(time.RFC3339)})
			return nil
		})
		r.start()
		time.Sleep(time.Minute)
		s := r.schedule(queue.Schedule{
			Name: "report", Cron: "30 4 * * *", Zone: "Europe/Berlin",
			Task: queue.Spec{
				Kind: "report", Payload: []byte(`"all"`), Options: queue.Options{Labels: map[string]string{"team": "a"}},
			},
		})
		first := time.Date(2000, 1, 1, 4, 30, 0, 0, berlin)
		if !s.Next.Equal(first) || !s.Last.At.IsZero() {
			t.Errorf("the schedule is %+v, want its first tick at %v", s, first)
		}
		time.Sleep(50 * time.Hour)
		s = r.scheduled("report")
		for i, got := range runs {
			if want := first.AddDate(0, 0, i); !got.at.Equal(want) || got.tick != want.Format(time.RFC3339) {
				t.Errorf("run %d was at %v for the tick %s, want %v", i, got.at, got.tick, want)
			}
		}
		if len(runs) != 2 || !s.Last.At.Equal(first.AddDate(0, 0, 1)) || !s.Next.Equal(first.AddDate(0, 0, 2)) {
			t.Errorf("after %d runs the schedule is %+v", len(runs), s)
		}
		if task := r.is(s.Last.Task, queue.Succeeded); task.Queue != "default" {
			t.Errorf("its last task is %+v", task)
		}
		r.end()
	})
}

// A task that no schedule submitted has no tick.
func TestC8_OtherTasksHaveNoTick(t *testing.T) {
	for _, labels := range []map[string]string{
		nil, {"schedule": "s"}, {"tick": "2000-01-01T00:00:00Z"}, {"schedule": "s", "tick": "noon"},
	} {
		task := queue.Task{Spec: queue.Spec{Options: queue.Options{Labels: labels}}}
		if at, ok := task.Tick(); ok {
			t.Errorf("a task with labels %v has the tick %v", labels, at)
		}
	}
}

// The policy of a schedule decides about ticks that were missed while no queue ran.
func TestC8_MissedTicks(t *testing.T) {
	for _, c := range []struct {
		missed   queue.Missed
		back     time.Duration // after midnight
		tasks    []int         // hours of their ticks, before
		tasksNow []int         // and when a queue runs again
	}{
		{queue.MissedSkip, 4*time.Hour + 10*time.Minute, []int{1}, nil},
		{queue.MissedSkip, 4*time.Hour + 30*time.Second, []int{1}, []int{4}}, // that one is on time
		{queue.MissedOnce, 4*time.Hour + 10*time.Minute, []int{1}, []int{4}},
		{"", 4*time.Hour + 10*time.Minute, []int{1}, []int{4}},
		{queue.MissedOnce, 4*time.Hour + 30*time.Second, []int{1}, []int{4}},
		{queue.MissedAll, 4*time.Hour + 10*time.Minute, []int{1}, []int{2, 3, 4}},
		{queue.MissedAll, 90 * time.Minute, []int{1}, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newTickRig(t, idle())
			midnight := time.Now()
			r.schedule(queue.Schedule{Cron: "@hourly", Missed: c.missed})
			r.start()
			time.Sleep(80 * time.Minute)
			r.end()
			r.ticked("s", hours(c.tasks...)...)
			time.Sleep(c.back - time.Since(midnight))
			r.start()
			all := slices.Concat(c.tasks, c.tasksNow)
			r.ticked("s", hours(all...)...)
			later := int(c.back/time.Hour) + 1
			time.Sleep(time.Hour)
			r.ticked("s", hours(append(all, later)...)...) // and goes on as before
			r.end()
		})
	}
}

// Of very many ticks that were missed the newest are made up for.
func TestC8_MissedTicksAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, idle())
		r.schedule(queue.Schedule{Cron: "* * * * *", Missed: queue.MissedAll})
		time.Sleep(5 * 24 * time.Hour)
		now := time.Now()
		r.start()
		want := parse(t, "* * * * *").Between(now.UTC().Add(-queue.MissedMax*time.Minute), now, 2*queue.MissedMax)
		if len(want) != queue.MissedMax {
			t.Fatalf("%d ticks should be made up for", len(want))
		}
		r.ticked("s", want...)
		r.end()
	})
}

// A queue that never has room for all missed ticks at once gets them in parts, as
// many as it has room for, and in their order.
func TestC8_MissedTicksOfASmallQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, queue.Config{})
		if err := r.Configure(r.Context(), "default", queue.Settings{Pending: 3}); err != nil {
			t.Fatal(err)
		}
		r.schedule(queue.Schedule{Cron: "@hourly", Missed: queue.MissedAll})
		time.Sleep(10*time.Hour + time.Minute)
		r.start()
		time.Sleep(15 * time.Minute) // after a refusal it tries again in a minute
		r.ticked("s", hours(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)...)
		if s := r.scheduled("s"); s.Error != "" || !s.Next.Equal(hours(11)[0]) {
			t.Errorf("then the schedule is %+v", s)
		}
		r.end()
	})
}

// threeTasks is a store whose calls have room for three tasks, as a server's for large ones.
type threeTasks struct{ queue.Store }

func (s threeTasks) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	if len(r.Tasks) > 3 {
		return queue.ErrTooLarge
	}
	return s.Store.Reschedule(ctx, now, r)
}

// Missed ticks whose tasks do not fit in one call are made up for in several, all at once.
func TestC8_MissedTicksOfLargeTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, idle())
		r.Queue = queue.New(threeTasks{r.store}, idle())
		r.schedule(queue.Schedule{Cron: "@hourly", Missed: queue.MissedAll})
		time.Sleep(10*time.Hour + time.Minute)
		r.start()
		r.ticked("s", hours(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)...)
		if s := r.scheduled("s"); s.Error != "" || !s.Next.Equal(hours(11)[0]) {
			t.Errorf("then the schedule is %+v", s)
		}
		r.end()
	})
}

// A schedule that is declared again, as each process does at its start, goes on;
// and begins anew if its times have changed.
func TestC8_ScheduleDeclaredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, idle())
		hourly := queue.Schedule{Cron: "@hourly"}
		first := r.schedule(hourly)
		if again := r.schedule(hourly); again.Version != first.Version {
			t.Errorf("nothing differs, and version %s has become %s", first.Version, again.Version)
		}
		hourly.Missed = queue.MissedOnce // which it is anyhow
		if again := r.schedule(hourly); again.Version != first.Version {
			t.Errorf("nothing differs, and version %s has become %s", first.Version, again.Version)
		}
		time.Sleep(90 * time.Minute)
		hourly.Task.Payload = []byte("1")
		if s := r.schedule(hourly); !s.Next.Equal(hours(1)[0]) || string(s.Task.Payload) != "1" {
			t.Errorf("with another task the schedule is %+v; it has missed a tick", s)
		}
		hourly.Zone = "Asia/Kolkata" // whose hours begin at half past ours
		want := hours(2)[0]
		if s := r.schedule(hourly); !s.Next.Equal(want.Add(-30 * time.Minute).Add(time.Hour)) {
			t.Errorf("in another zone the next tick is %v", s.Next)
		}
		hourly.Zone, hourly.Cron = "", "0 */3 * * *"
		if s := r.schedule(hourly); !s.Next.Equal(hours(3)[0]) {
			t.Errorf("with another expression the next tick is %v", s.Next)
		}
		r.start()
		time.Sleep(4 * time.Hour)
		r.ticked("s", hours(3)...)
		r.end()
	})
}

// A process that runs a schedule goes by its new times as soon as they are
// declared.
func TestC8_ScheduleDeclaredOtherwise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, idle())
		r.start()
		r.schedule(queue.Schedule{Cron: "@hourly"})
		time.Sleep(100 * time.Minute)
		r.schedule(queue.Schedule{Cron: "0 */3 * * *"})
		time.Sleep(6 * time.Hour)
		r.ticked("s", hours(1, 3, 6)...)
		r.end()
	})
}

// Many schedules that tick at the same time are no more than many.
func TestC8_ManySchedulesAtMidnight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		r, b := newBetweenRig(t, idle())
		for i := range many {
			r.schedule(queue.Schedule{Name: fmt.Sprint("s", i), Cron: "@daily"})
		}
		b.reschedule = func(_ int64, do func() error) error {
			time.Sleep(time.Second) // a slow disk
			return do()
		}
		r.start()
		time.Sleep(24*time.Hour + 13*time.Second)
		for i := range many {
			r.ticked(fmt.Sprint("s", i), hours(24)...)
		}
		r.end()
	})
}

// A schedule that is declared by many at once is made once.
func TestC8_ScheduleDeclaredByMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, idle())
		r.start()
		var wg sync.WaitGroup
		for range 16 {
			q := queue.New(r.store, idle())
			wg.Go(func() {
				s := queue.Schedule{Name: "s", Cron: "@hourly", Task: queue.Spec{Kind: "k"}}
				if err := q.Schedule(r.Context(), s); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if all, err := r.Schedules(r.Context()); len(all) != 1 || err != nil {
			t.Errorf("schedules %v, error %v", all, err)
		}
		r.end()
	})
}

// A change of a schedule takes effect at once in the process that makes it, and ticks of a
// paused schedule do not count as missed.
func TestC8_SchedulePausedResumedAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, idle())
		hourly := queue.Schedule{Cron: "@hourly", Missed: queue.MissedAll}
		r.schedule(hourly)
		r.start()
		time.Sleep(90 * time.Minute)
		r.ticked("s", hours(1)...)
		ctx := r.Context()
		for _, by := range []string{"ann", "bob"} {
			if err := r.PauseSchedule(ctx, "s", queue.Pause{By: by, Reason: "too loud"}); err != nil {
				t.Fatal(err)
			}
		}
		hourly.Task.Payload = []byte("1")
		if s := r.schedule(hourly); s.Paused == nil || s.Paused.By != "ann" || !s.Paused.Since.Equal(time.Now()) {
			t.Errorf("paused by %+v, and declared again", s.Paused)
		}
		time.Sleep(3 * time.Hour)
		r.ticked("s", hours(1)...)
		for range 2 {
			if err := r.ResumeSchedule(ctx, "s"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		r.ticked("s", hours(1, 5)...)
		if err := r.Unschedule(ctx, "s"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		r.ticked("s", hours(1, 5)...)
		for what, err := range map[string]error{
			"Unschedule":     r.Unschedule(ctx, "s"),
			"PauseSchedule":  r.PauseSchedule(ctx, "s", queue.Pause{}),
			"ResumeSchedule": r.ResumeSchedule(ctx, "s"),
			"TriggerSchedule": func() error {
				_, err := r.TriggerSchedule(ctx, "s")
				return err
			}(),
		} {
			if !errors.Is(err, queue.ErrNotFound) {
				t.Errorf("%s of one that is gone: %v", what, err)
			}
		}
		r.end()
	})
}

// A task that is triggered has the labels of a tick, and moves no other: also while the
// schedule is paused, and though it skips ticks that overlap.
func TestC8_ScheduleTriggered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, idle())
		r.schedule(queue.Schedule{Cron: "@hourly", Zone: "Europe/Berlin", SkipOverlap: true})
		if err := r.PauseSchedule(r.Context(), "s", queue.Pause{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		was, err := r.Schedules(r.Context())
		if err != nil {
			t.Fatal(err)
		}
		id, err := r.TriggerSchedule(r.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		task, err := r.Get(r.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if at, ok := task.Tick(); !ok || !at.Equal(time.Now()) || task.Labels[queue.LabelSchedule] != "s" {
			t.Errorf("the tick is %v, %v of %v; the labels are %v", at, ok, time.Now(), task.Labels)
		}
		is, err := r.Schedules(r.Context())
		if err != nil || is[0].Version != was[0].Version || !is[0].Next.Equal(was[0].Next) {
			t.Errorf("the schedule has changed from %+v to %+v, %v", was, is, err)
		}
		if err := r.ResumeSchedule(r.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		r.start()
		time.Sleep(time.Hour)
		n := 0
		for _, err := range r.Find(r.Context(), queue.Filter{Labels: map[string]string{queue.LabelSchedule: "s"}}) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != 2 {
			t.Errorf("there are %d tasks; want that of the tick too, which is not skipped", n)
		}
		r.end()
	})
}

// A schedule may be made paused, and begins when it is resumed.
func TestC8_ScheduleMadePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, idle())
		r.start()
		r.schedule(queue.Schedule{Cron: "@hourly", Paused: &queue.Pause{By: "ann"}})
		time.Sleep(150 * time.Minute)
		r.ticked("s")
		if err := r.ResumeSchedule(r.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		r.ticked("s", hours(3)...)
		r.end()
	})
}

// A tick is left out while the task of the last one is unfinished, if the
// schedule says so.
func TestC8_SkipOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, idle())
		queue.Kind[any]("k").Handle(r.Queue, func(ctx context.Context, _ *queue.Job[any]) error {
			select {
			case <-time.After(150 * time.Minute):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		r.schedule(queue.Schedule{Name: "skips", Cron: "@hourly", SkipOverlap: true})
		r.schedule(queue.Schedule{Name: "overlaps", Cron: "@hourly"})
		r.start()
		time.Sleep(5 * time.Hour)
		r.ticked("skips", hours(1, 4)...)
		r.ticked("overlaps", hours(1, 2, 3, 4, 5)...)
		last := r.scheduled("skips")
		r.command(queue.OrderCancel, last.Last.Task)
		time.Sleep(time.Hour)
		forget := queue.Command{Do: queue.OrderForget, Filter: queue.Filter{IDs: []queue.ID{last.Last.Task}}}
		if n, err := r.Command(r.Context(), forget); n != 1 || err != nil {
			t.Fatalf("%d tasks are forgotten, error %v", n, err)
		}
		time.Sleep(time.Hour)
		r.ticked("skips", hours(1, 6)...) // and the one at 4 is forgotten
		r.end()
	})
}

// Tasks of a group run one after the other, which is the other way to overlap.
func TestC8_TicksOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, idle())
		running := 0
		queue.Kind[any]("k").Handle(r.Queue, func(_ context.Context, j *queue.Job[any]) error {
			if running++; running > 1 {
				t.Errorf("%d run at once", running)
			}
			time.Sleep(90 * time.Minute)
			running--
			return nil
		})
		r.schedule(queue.Schedule{Cron: "@hourly", Task: queue.Spec{Options: queue.Options{Group: "s"}}})
		r.start()
		time.Sleep(4*time.Hour + time.Minute)
		r.ticked("s", hours(1, 2, 3, 4)...)
		if err := r.Unschedule(r.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Hour)
		if st, err := r.Stats(r.Context()); err != nil || st.Queues["default"].States[queue.Succeeded] != 4 {
			t.Errorf("stats %+v, error %v", st, err)
		}
		r.end()
	})
}
