package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

// node is a process of many that run the queues of one store. Its clock on the
// wall is its own.
type node struct {
	*queue.Queue
	stop  context.CancelFunc // nil while it does not run
	ended chan error
}

// cluster are nodes on a store, and a clock that they all should have.
type cluster struct {
	*rig
	nodes []*node
	shift time.Duration // from the bubble's clock to the one on the wall
	mu    sync.Mutex
	ran   map[string]int // runs by schedule and tick
}

// newCluster makes nodes whose clocks show begin, give or take skew.
func newCluster(t *testing.T, rnd *rand.Rand, n int, begin time.Time, skew time.Duration) *cluster {
	t.Helper()
	c := &cluster{rig: newRig(t, 1, queue.Config{}), shift: time.Until(begin), ran: make(map[string]int)}
	for range n {
		mine := c.shift + time.Duration(rnd.Int64N(2*int64(skew)+1)) - skew
		c.nodes = append(c.nodes, c.join(func() time.Time { return time.Now().Add(mine) }))
	}
	c.Queue = c.nodes[0].Queue
	const year = 365 * 24 * time.Hour
	if err := c.Configure(t.Context(), "", queue.Settings{Keep: queue.Retention{Age: year}}); err != nil {
		t.Fatal(err)
	}
	return c
}

// join makes a node with a clock of its own.
func (c *cluster) join(wall func() time.Time) *node {
	d := &node{Queue: queue.New(c.store, queue.Config{Poll: 10 * time.Minute})}
	d.SetWall(wall)
	queue.Kind[any]("k").Handle(d.Queue, func(_ context.Context, j *queue.Job[any]) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ran[j.Labels[queue.LabelSchedule]+" "+j.Labels[queue.LabelTick]]++
		return nil
	})
	return d
}

func (d *node) start(t *testing.T) {
	t.Helper()
	if d.stop != nil {
		return
	}
	var ctx context.Context
	ctx, d.stop = context.WithCancel(t.Context())
	d.ended = make(chan error, 1)
	go func() { d.ended <- d.Run(ctx, stint.New(4, stint.Config{})) }()
}

func (d *node) end(t *testing.T) {
	t.Helper()
	if d.stop == nil {
		return
	}
	d.stop()
	d.stop = nil
	if err := <-d.ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func (c *cluster) endAll() {
	for _, d := range c.nodes {
		d.end(c.T)
	}
	synctest.Wait()
}

// once checks that the ticks of a schedule are those of its expression from one
// time to another, each one once, submitted and run. Those about the end may or
// may not be there.
func (c *cluster) once(s queue.Schedule, from, to time.Time, about time.Duration) {
	c.Helper()
	got := c.ticks(s.Name)
	slices.SortFunc(got, time.Time.Compare)
	loc := in(c.T, s.Zone)
	least := parse(c.T, s.Cron).Between(from.In(loc), to.Add(-about), 1e6)
	most := parse(c.T, s.Cron).Between(from.In(loc), to.Add(about), 1e6)
	if len(least) == 0 || len(got) < len(least) || len(got) > len(most) {
		c.Errorf("%s in %s: %d ticks, want from %d to %d", s.Cron, s.Zone, len(got), len(least), len(most))
	}
	for i := range min(len(got), len(most)) {
		if !got[i].Equal(most[i]) {
			c.Fatalf("%s in %s: tick %d is %v, want %v", s.Cron, s.Zone, i, got[i], most[i])
		}
	}
	for _, tick := range got {
		if n := c.ran[s.Name+" "+tick.Format(time.RFC3339)]; n != 1 {
			c.Errorf("%s in %s: the task of %v has run %d times", s.Cron, s.Zone, tick, n)
		}
	}
}

// Eight nodes whose clocks differ, and which come and go, submit each tick of a
// day once: a day on which clocks are set forward or back too.
func TestC8_TicksOnceOverNodes(t *testing.T) {
	for _, day := range []struct {
		zone string
		date time.Time
	}{
		{"America/New_York", time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)},
		{"America/New_York", time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)},
		{"Australia/Lord_Howe", time.Date(2026, 4, 5, 0, 0, 0, 0, time.UTC)},
		{"Australia/Lord_Howe", time.Date(2026, 10, 4, 0, 0, 0, 0, time.UTC)},
	} {
		rnd := seeded.Rand(t)
		synctest.Test(t, func(t *testing.T) {
			y, m, d := day.date.Date()
			begin := time.Date(y, m, d-1, 20, 0, 30, 0, in(t, day.zone))
			c := newCluster(t, rnd, 8, begin, 20*time.Second)
			var all []queue.ScheduleState
			for i, expr := range []string{"*/10 * * * *", "15 * * * *", "30 2 * * *", "10 1,2,3 * * *", "@every 7m"} {
				all = append(all, c.schedule(queue.Schedule{
					Name: fmt.Sprint("s", i), Cron: expr, Zone: day.zone, Missed: queue.MissedAll,
				}))
			}
			for time.Now().Add(c.shift).Sub(begin) < 30*time.Hour {
				for _, node := range c.nodes {
					if rnd.IntN(3) > 0 {
						node.start(t)
					} else {
						node.end(t)
					}
				}
				time.Sleep(time.Duration(rnd.Int64N(int64(30 * time.Minute))))
			}
			c.nodes[0].start(t)
			time.Sleep(5 * time.Minute)
			c.endAll()
			for _, s := range all {
				c.once(s.Schedule, begin.Add(-20*time.Second), time.Now().Add(c.shift), time.Minute)
			}
		})
	}
}

// Clocks that jump by hours and step back repeat no tick; what a jump passes is
// missed.
func TestC8_TicksOnceWhateverClocksDo(t *testing.T) {
	rnd := seeded.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		begin := time.Date(2026, 6, 1, 0, 0, 30, 0, time.UTC)
		c := newCluster(t, rnd, 4, begin, 0)
		var mu sync.Mutex
		off := make([]time.Duration, len(c.nodes))
		for i, node := range c.nodes {
			node.SetWall(func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return time.Now().Add(c.shift + off[i])
			})
			node.start(t)
		}
		c.schedule(queue.Schedule{Cron: "*/5 * * * *", Missed: queue.MissedAll})
		for range 200 {
			mu.Lock()
			i := rnd.IntN(len(off))
			off[i] = time.Duration(rnd.Int64N(int64(6*time.Hour))) - 3*time.Hour
			mu.Unlock()
			time.Sleep(time.Duration(rnd.Int64N(int64(10 * time.Minute))))
			if n := rnd.IntN(20); n == 0 { // as an operator with any of the clocks does
				node := c.nodes[rnd.IntN(len(off))]
				if err := errors.Join(node.PauseSchedule(t.Context(), "s", queue.Pause{}),
					node.ResumeSchedule(t.Context(), "s")); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.endAll()
		got := c.ticks("s")
		slices.SortFunc(got, time.Time.Compare)
		if unique := slices.CompactFunc(slices.Clone(got), time.Time.Equal); len(unique) != len(got) || len(got) < 100 {
			t.Errorf("%d ticks are %d tasks", len(unique), len(got))
		}
		if s := c.scheduled("s"); !s.Last.At.Equal(got[len(got)-1]) {
			t.Errorf("the schedule is %+v", s)
		}
	})
}

// between is a store of whose calls some go wrong.
type between struct {
	queue.Store
	calls      atomic.Int64
	reschedule func(n int64, do func() error) error // set before Run
}

func (b *between) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	return b.reschedule(b.calls.Add(1), func() error { return b.Store.Reschedule(ctx, now, r) })
}

// newBetweenRig makes a rig on a store of whose reschedules some go wrong.
func newBetweenRig(t *testing.T, cfg queue.Config) (*rig, *between) {
	t.Helper()
	r := newRig(t, 4, queue.Config{})
	b := &between{Store: r.store, reschedule: func(_ int64, do func() error) error { return do() }}
	r.Queue = queue.New(b, cfg)
	queue.Kind[any]("k").Handle(r.Queue, func(context.Context, *queue.Job[any]) error { return nil })
	return r, b
}

// A tick whose call got lost on its way, or whose answer did, is submitted once,
// and soon.
func TestC8_TicksThroughFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := newBetweenRig(t, idle())
		r.schedule(queue.Schedule{Cron: "@hourly"})
		b.reschedule = func(n int64, do func() error) error {
			var err error
			if n%3 != 0 {
				err = do()
			}
			if n%3 == 2 {
				return err
			}
			return fmt.Errorf("%w: call %d", queue.ErrUnavailable, n)
		}
		r.start()
		for h := range 10 {
			time.Sleep(time.Duration(h+1)*time.Hour + 3*time.Second - time.Since(hours(0)[0]))
			r.ticked("s", hours(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)[:h+1]...)
		}
		r.end()
	})
}

// A schedule whose task is refused says so, is tried again at growing intervals
// by all processes together, holds up no other, and goes on when it can.
func TestC8_RefusedTicks(t *testing.T) {
	var log lines
	cfg := idle()
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	synctest.Test(t, func(t *testing.T) {
		r, b := newBetweenRig(t, cfg)
		others := make([]*node, 4)
		for i := range others {
			others[i] = &node{Queue: queue.New(b, cfg)}
			others[i].start(r.T)
		}
		r.start()
		if err := r.Configure(r.Context(), "full", queue.Settings{Pending: 1}); err != nil {
			t.Fatal(err)
		}
		blocker := r.submit("unknown", queue.Options{Queue: "full"})
		r.schedule(queue.Schedule{Name: "refused", Cron: "@hourly", Task: queue.Spec{Options: queue.Options{Queue: "full"}}})
		r.schedule(queue.Schedule{Name: "fine", Cron: "*/10 * * * *"})
		time.Sleep(time.Hour - time.Nanosecond)
		synctest.Wait()
		calls := b.calls.Load()
		time.Sleep(30 * time.Minute)
		s := r.scheduled("refused")
		if !strings.Contains(s.Error, "full") || !s.Retry.After(time.Now()) || !s.Next.Equal(hours(1)[0]) {
			t.Errorf("after half an hour the schedule is %+v", s)
		}
		// Each attempt is a call that is refused, and one that says so, and others
		// that come too late.
		if n := b.calls.Load() - calls; n > int64(8+40*2*(1+len(others))) {
			t.Errorf("%d calls in half an hour", n)
		}
		if n := log.count("level=ERROR"); n < 30 || n > 45 {
			t.Errorf("the log has %d errors", n)
		}
		if n := len(r.ticks("fine")); n != 8 {
			t.Errorf("the other schedule has ticked %d times", n)
		}
		r.command(queue.OrderCancel, blocker)
		time.Sleep(time.Minute)
		r.ticked("refused", hours(1)...)
		if s := r.scheduled("refused"); s.Error != "" || !s.Retry.IsZero() || !s.Next.Equal(hours(2)[0]) {
			t.Errorf("when it could tick the schedule became %+v", s)
		}
		for _, d := range others {
			d.end(r.T)
		}
		r.end()
	})
}

// A schedule whose tasks have too many labels with those of a tick is refused. If the store has
// one, as an earlier version could add it, the schedule says so until it is declared anew.
func TestC8_TicksThatCanNeverBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, queue.Config{})
		s := queue.ScheduleState{
			Schedule: queue.Schedule{Name: "s", Cron: "@hourly", Task: queue.Spec{Kind: "k"}},
			Next:     time.Now().Add(time.Hour), Version: r.NewID(),
		}
		s.Task.Labels = make(map[string]string)
		for i := range queue.MaxLabels - 1 {
			s.Task.Labels[fmt.Sprint("l", i)] = "" // and the two of a tick are too many
		}
		if err := r.Schedule(t.Context(), s.Schedule); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("declared with %d labels: error %v, want ErrInvalid", len(s.Task.Labels), err)
		}
		if err := r.store.Reschedule(t.Context(), time.Now(), queue.Reschedule{Name: "s", To: &s}); err != nil {
			t.Fatal(err)
		}
		r.start()
		time.Sleep(90 * time.Minute)
		if s := r.scheduled("s"); !strings.Contains(s.Error, "labels") {
			t.Errorf("the schedule is %+v", s)
		}
		if s := r.schedule(queue.Schedule{Cron: "@hourly"}); s.Error != "" {
			t.Errorf("repaired, the schedule is %+v", s)
		}
		r.ticked("s", hours(1)...)
		r.end()
	})
}

// A process that does not know a zone leaves the schedule to others. If there
// are none, the schedule says so; others go on, and nothing spins.
func TestC8_TicksInAnUnknownZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := newBetweenRig(t, queue.Config{})
		var ids queue.IDs
		first := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
		s := queue.ScheduleState{
			Schedule: queue.Schedule{
				Name: "lost", Cron: "@hourly", Zone: "Mars/Olympus_Mons", Task: queue.Spec{Kind: "k"},
			},
			Next: first, Version: ids.New(time.Now()),
		}
		if err := r.store.Reschedule(r.Context(), time.Now(), queue.Reschedule{Name: s.Name, To: &s}); err != nil {
			t.Fatal(err)
		}
		r.schedule(queue.Schedule{Name: "fine", Cron: "@hourly"})
		r.start()
		time.Sleep(time.Hour + time.Minute)
		if got := r.scheduled("lost"); got.Error != "" {
			t.Errorf("while it might be on time at others, the schedule is %+v", got)
		}
		time.Sleep(2 * time.Minute)
		if got := r.scheduled("lost"); !strings.Contains(got.Error, "Mars/Olympus_Mons") || !got.Next.Equal(first) {
			t.Errorf("when no process has submitted its tick, the schedule is %+v", got)
		}
		time.Sleep(3 * time.Hour)
		r.ticked("fine", hours(1, 2, 3, 4)...)
		if n := b.calls.Load(); n > 10 {
			t.Errorf("%d calls", n)
		}
		if err := r.ResumeSchedule(r.Context(), "lost"); err != nil {
			t.Errorf("it is not paused: %v", err)
		}
		if err := r.PauseSchedule(r.Context(), "lost", queue.Pause{}); err != nil {
			t.Errorf("it cannot be paused: %v", err)
		}
		if err := r.ResumeSchedule(r.Context(), "lost"); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("resumed where its zone is not known: %v", err)
		}
		if err := r.Unschedule(r.Context(), "lost"); err != nil {
			t.Errorf("it cannot be removed: %v", err)
		}
		r.end()
	})
}

// A store that cannot be read is asked again, and the log counts how often.
func TestC8_SchedulesThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		store := noSchedules{memstore.New(memstore.Config{})}
		q := queue.New(store, queue.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		d := &node{Queue: q}
		d.start(t)
		time.Sleep(200 * time.Second)
		d.end(t)
		if n := log.count("read schedules"); n != 4 || log.count("repeated=59") < 3 {
			t.Errorf("the log says so %d times in 200 s, want a line a minute that counts", n)
		}
	})
}

// noSchedules is a store that cannot read its schedules.
type noSchedules struct{ memstore.Store }

func (noSchedules) Schedules(context.Context) ([]queue.ScheduleState, error) { return nil, errFault }

// A process finds a schedule that another process has created at its next look.
func TestC8_SchedulesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, queue.Config{Poll: 10 * time.Second})
		r.start()
		time.Sleep(time.Second)
		other := queue.New(r.store, queue.Config{})
		s := queue.Schedule{Name: "s", Cron: "@every 1m", Task: queue.Spec{Kind: "k"}}
		if err := other.Schedule(r.Context(), s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		if n := len(r.ticks("s")); n != 3 {
			t.Errorf("%d ticks in three minutes", n)
		}
		if err := other.PauseSchedule(r.Context(), "s", queue.Pause{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		if n := len(r.ticks("s")); n != 3 {
			t.Errorf("%d ticks when it was paused", n)
		}
		r.end()
	})
}

// A clock that is far ahead uses ticks up, and those whose clocks are right say
// so. A schedule that is made anew goes by the right ones.
func TestC8_TicksOfAWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		cfg := queue.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		r := newTickRig(t, cfg)
		hourly := queue.Schedule{Cron: "@hourly"}
		r.schedule(hourly)
		r.start()
		ahead := &node{Queue: queue.New(r.store, queue.Config{})}
		ahead.SetWall(func() time.Time { return time.Now().Add(10 * time.Hour) })
		ahead.start(t)
		time.Sleep(90 * time.Minute)
		ahead.end(t)
		if n := log.count("clock of this system or of another is wrong"); n != 2 { // once each tick
			t.Errorf("%d warnings of a clock that is ten hours ahead", n)
		}
		time.Sleep(3 * time.Hour)
		r.ticked("s", hours(10, 11)...)
		if err := r.Unschedule(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		r.schedule(hourly)
		time.Sleep(time.Hour)
		r.ticked("s", hours(10, 11, 5)...)
		r.end()
	})
}

// lines is a log that can be looked at.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

func (l *lines) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}
