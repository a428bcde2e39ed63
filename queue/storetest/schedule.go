package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func scheduleCases() []testCase {
	return []testCase{
		{"C8_ScheduleIsKept", Config{}, scheduleIsKept},
		{"C8_SchedulesAreCopied", Config{}, schedulesMemory},
		{"C8_ScheduleVersions", Config{}, scheduleVersions},
		{"C8_RepeatedReschedule", Config{}, repeatedReschedule},
		{"C8_InvalidSchedules", Config{MaxPayload: 100}, invalidSchedules},
		{"C8_RescheduleIsAllOrNone", Config{MaxPayload: 100}, rescheduleAllOrNone},
		{"C8_TicksAreTasks", Config{}, ticksAreTasks},
		{"C8_OneTaskPerTick", Config{}, oneTaskPerTick},
		{"C8_SchedulesSurvive", Config{}, schedulesSurvive},
	}
}

// hourly returns a schedule with a new version; it is not in the store.
func (c *trial) hourly(name string) queue.ScheduleState {
	return queue.ScheduleState{
		Schedule: queue.Schedule{Name: name, Cron: "0 * * * *", Task: queue.Spec{Kind: kind}},
		Version:  c.ids.New(c.now),
		Next:     c.now.Add(time.Hour).Truncate(time.Hour),
	}
}

// reschedule makes a change, which must succeed, and returns the schedule that the store
// has then.
func (c *trial) reschedule(was queue.ID, to queue.ScheduleState, tasks ...queue.NewTask) queue.ScheduleState {
	c.Helper()
	r := queue.Reschedule{Name: to.Name, Was: was, To: &to, Tasks: tasks}
	c.ok("Reschedule", c.Store.Reschedule(c.Context(), c.now, r))
	return c.schedule(to.Name)
}

// unschedule removes a schedule and returns the error.
func (c *trial) unschedule(name string, was queue.ID) error {
	return c.Store.Reschedule(c.Context(), c.now, queue.Reschedule{Name: name, Was: was})
}

func (c *trial) schedules() (names []string, all []queue.ScheduleState) {
	c.Helper()
	all, err := c.Store.Schedules(c.Context())
	c.ok("Schedules", err)
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names, all
}

func (c *trial) schedule(name string) queue.ScheduleState {
	c.Helper()
	names, all := c.schedules()
	i := slices.Index(names, name)
	if i < 0 {
		c.Fatalf("schedule %s is missing; the schedules are %v", name, names)
	}
	return all[i]
}

// nextTick returns the schedule after its next tick, and the task of that tick.
func (c *trial) nextTick(s queue.ScheduleState) (after queue.ScheduleState, task queue.NewTask) {
	task = c.fresh(queue.Options{Labels: map[string]string{"tick": s.Next.Format(time.RFC3339)}})
	s.Last = queue.Tick{At: s.Next, Task: task.ID}
	s.Next, s.Version = s.Next.Add(time.Hour), c.ids.New(c.now)
	return s, task
}

func scheduleIsKept(c *trial) {
	if names, _ := c.schedules(); len(names) != 0 {
		c.Fatalf("an empty store has the schedules %v", names)
	}
	want := queue.ScheduleState{
		Schedule: queue.Schedule{
			Name: "report of März", Cron: "30 4 * * mon-fri", Zone: "Europe/Berlin", Missed: queue.MissedAll,
			SkipOverlap: true,
			Task: queue.Spec{
				Kind:    "send",
				Payload: []byte("\x00payload\xff"),
				Options: queue.Options{
					Queue:       "mail",
					Tier:        stint.High,
					Key:         "tenant",
					Group:       "group",
					Timeout:     time.Minute,
					MaxAttempts: 7,
					MaxCrashes:  2,
					Labels:      map[string]string{"a": "b"},
				},
			},
			Paused: &queue.Pause{By: operator, Reason: "a reason", Since: c.now},
		},
		Version: c.ids.New(c.now), Next: c.now.Add(90 * time.Minute), Error: "it was full", Retry: c.now.Add(time.Second),
		Last: queue.Tick{At: c.now.Add(-time.Hour), Task: c.ids.New(c.now)},
	}
	for _, name := range []string{"z", "a", "m"} {
		c.reschedule(queue.ID{}, c.hourly(name))
	}
	if got := c.reschedule(queue.ID{}, want); !reflect.DeepEqual(inUTC(got), want) {
		c.Errorf("the schedule is\n%+v, want\n%+v", got, want)
	}
	if names, _ := c.schedules(); !slices.Equal(names, []string{"a", "m", want.Name, "z"}) {
		c.Errorf("the schedules are %v", names)
	}
	if tasks := c.find(queue.Filter{}); len(tasks) != 0 {
		c.Errorf("schedules without ticks have submitted %d tasks", len(tasks))
	}
}

// inUTC returns s with its times in UTC; a store may return them in any zone.
func inUTC(s queue.ScheduleState) queue.ScheduleState {
	s.Next, s.Retry, s.Last.At = s.Next.UTC(), s.Retry.UTC(), s.Last.At.UTC()
	if s.Paused != nil {
		pause := *s.Paused
		pause.Since = pause.Since.UTC()
		s.Paused = &pause
	}
	return s
}

func schedulesMemory(c *trial) {
	s := c.hourly("s")
	s.Task.Payload, s.Task.Labels = []byte("payload"), map[string]string{"a": "b"}
	s.Paused = &queue.Pause{By: operator}
	scratch := func(s queue.ScheduleState) {
		s.Task.Payload[0], s.Task.Labels["a"], s.Paused.By = 'X', "X", "X"
	}
	got := c.reschedule(queue.ID{}, s)
	scratch(s)
	scratch(got)
	got = c.schedule("s")
	if string(got.Task.Payload) != "payload" || got.Task.Labels["a"] != "b" || got.Paused.By != operator {
		c.Errorf("changes to values of the caller have changed the schedule: %+v", got)
	}
}

// scheduleVersions shows that a change is refused unless Was is the current version.
func scheduleVersions(c *trial) {
	changed := func(what string, was queue.ID, to *queue.ScheduleState, want error) {
		c.Helper()
		before := c.schedule("s")
		err := c.Store.Reschedule(c.Context(), c.now, queue.Reschedule{Name: "s", Was: was, To: to})
		c.refused(what, err, want)
		if after := c.schedule("s"); after.Version != before.Version {
			c.Errorf("%s: version %s has become %s", what, before.Version, after.Version)
		}
	}
	first := c.reschedule(queue.ID{}, c.hourly("s"))
	other := c.reschedule(queue.ID{}, c.hourly("other"))
	next, unknown := c.hourly("s"), c.ids.New(c.now)
	changed("a second schedule of the name", queue.ID{}, &next, queue.ErrChanged)
	changed("a version that never was", unknown, &next, queue.ErrChanged)
	changed("the version of another schedule", other.Version, &next, queue.ErrChanged)
	changed("removing another version", unknown, nil, queue.ErrChanged)
	c.reschedule(first.Version, next)
	again := c.hourly("s")
	changed("an old version", first.Version, &again, queue.ErrChanged)
	changed("removing an old version", first.Version, nil, queue.ErrChanged)
	fresh := c.hourly("fresh")
	c.refused("a version of an unknown schedule", c.Store.Reschedule(c.Context(), c.now,
		queue.Reschedule{Name: "fresh", Was: unknown, To: &fresh}), queue.ErrChanged)
	c.ok("remove", c.unschedule("s", next.Version))
	if names, _ := c.schedules(); !slices.Equal(names, []string{"other"}) {
		c.Errorf("the schedules are %v", names)
	}
	c.reschedule(queue.ID{}, c.hourly("s"))
}

func repeatedReschedule(c *trial) {
	first := c.reschedule(queue.ID{}, c.hourly("s"))
	c.reschedule(queue.ID{}, first) // again
	after, task := c.nextTick(first)
	for range 3 {
		c.reschedule(first.Version, after, task)
	}
	c.is(queue.Waiting, task.ID)
	c.succeeds(c.claimOne())
	c.reschedule(first.Version, after, task)
	c.command(queue.OrderForget, task.ID)
	c.reschedule(first.Version, after, task)
	c.gone(task.ID)
	c.ok("remove", c.unschedule("s", after.Version))
	c.ok("remove again", c.unschedule("s", after.Version))
	c.reschedule(queue.ID{}, c.hourly("s"))
	c.refused("remove a schedule that was created again", c.unschedule("s", after.Version), queue.ErrChanged)
}

func invalidSchedules(c *trial) {
	is := c.reschedule(queue.ID{}, c.hourly("s"))
	for what, change := range map[string]func(*queue.Reschedule){
		"no name":                 func(r *queue.Reschedule) { r.Name, r.To.Name = "", "" },
		"another name":            func(r *queue.Reschedule) { r.To.Name = "other" },
		"no version":              func(r *queue.Reschedule) { r.To.Version = queue.ID{} },
		"the same version":        func(r *queue.Reschedule) { r.To.Version = r.Was },
		"no cron":                 func(r *queue.Reschedule) { r.To.Cron = "" },
		"an unknown policy":       func(r *queue.Reschedule) { r.To.Missed = "sometimes" },
		"a task without kind":     func(r *queue.Reschedule) { r.To.Task.Kind = "" },
		"an unknown tier":         func(r *queue.Reschedule) { r.To.Task.Tier = stint.Highest + 1 },
		"a submit without kind":   func(r *queue.Reschedule) { r.Tasks[0].Kind = "" },
		"a submit without ID":     func(r *queue.Reschedule) { r.Tasks[0].ID = queue.ID{} },
		"removed without version": func(r *queue.Reschedule) { *r = queue.Reschedule{Name: "s"} },
		"removed with a task":     func(r *queue.Reschedule) { r.To = nil },
	} {
		to, task := c.nextTick(is)
		r := queue.Reschedule{Name: "s", Was: is.Version, To: &to, Tasks: []queue.NewTask{task}}
		change(&r)
		c.refused(what, c.Store.Reschedule(c.Context(), c.now, r), queue.ErrInvalid)
	}
	if s := c.schedule("s"); s.Version != is.Version {
		c.Errorf("the schedule has become %+v", s)
	}
	large := c.hourly("s")
	large.Task.Payload = make([]byte, 101)
	r := queue.Reschedule{Name: "s", Was: is.Version, To: &large}
	c.refused("a payload that is too large", c.Store.Reschedule(c.Context(), c.now, r), queue.ErrTooLarge)
}

func rescheduleAllOrNone(c *trial) {
	c.configure(queue.Settings{Pending: 2})
	c.add(queue.Options{})
	is := c.reschedule(queue.ID{}, c.hourly("s"))
	to, task := c.nextTick(is)
	r := queue.Reschedule{Name: "s", Was: is.Version, To: &to, Tasks: []queue.NewTask{task, c.fresh(queue.Options{})}}
	try := func(what string, want error) {
		c.Helper()
		c.refused(what, c.Store.Reschedule(c.Context(), c.now, r), want)
		if s := c.schedule("s"); s.Version != is.Version {
			c.Errorf("%s: the schedule has become %+v", what, s)
		}
		c.gone(task.ID)
	}
	try("a full queue", queue.ErrFull)
	r.Tasks[1].Payload = make([]byte, 101)
	try("a payload that is too large", queue.ErrTooLarge)
	r.Tasks = r.Tasks[:1]
	r.Was = c.ids.New(c.now)
	try("another version", queue.ErrChanged)
	c.reschedule(is.Version, to, task)
	c.is(queue.Waiting, task.ID)
	next, _ := c.nextTick(to)
	c.reschedule(to.Version, next) // a change without tasks needs no room
}

func ticksAreTasks(c *trial) {
	l := c.listen(queue.DefaultQueue)
	is := c.reschedule(queue.ID{}, c.hourly("s"))
	older := c.add(queue.Options{})
	l.drain()
	var ids []queue.ID
	for range 3 {
		to, task := c.nextTick(is)
		is = c.reschedule(is.Version, to, task)
		ids = append(ids, task.ID)
	}
	l.await("a tick of a schedule")
	younger := c.add(queue.Options{})
	c.started(9, slices.Concat([]queue.ID{older}, ids, []queue.ID{younger})...)
	label := map[string]string{"tick": is.Last.At.Format(time.RFC3339)}
	if found := idsOf(c.find(queue.Filter{Labels: label})); !slices.Equal(found, ids[2:]) {
		c.Errorf("the tasks of the last tick are %v, want %v", found, ids[2:])
	}
}

// oneTaskPerTick runs 64 clients that submit the tasks of the same ticks, and checks that
// each tick has one task.
func oneTaskPerTick(c *trial) {
	const ticks = 20
	first := c.reschedule(queue.ID{}, c.hourly("s"))
	end := first.Next.Add(ticks * time.Hour)
	var won atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for {
				all, err := c.Store.Schedules(c.Context())
				if err != nil || len(all) != 1 {
					c.Errorf("the schedules are %v, error %v", all, err)
					return
				}
				if all[0].Next.Equal(end) {
					return
				}
				to, task := c.nextTick(all[0])
				r := queue.Reschedule{Name: "s", Was: all[0].Version, To: &to, Tasks: []queue.NewTask{task}}
				switch err := c.Store.Reschedule(c.Context(), c.now, r); {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, queue.ErrChanged):
					c.Errorf("Reschedule: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	seen := make(map[string]int)
	for _, t := range c.find(queue.Filter{}) {
		seen[t.Labels["tick"]]++
	}
	if won.Load() != ticks || len(seen) != ticks {
		c.Errorf("%d changes succeeded for %d ticks, and there are tasks for %d", won.Load(), ticks, len(seen))
	}
	for tick, n := range seen {
		if n != 1 {
			c.Errorf("%d tasks are of tick %s", n, tick)
		}
	}
}

func schedulesSurvive(c *trial) {
	for i := range 3 {
		c.reschedule(queue.ID{}, c.hourly(fmt.Sprint("s", i)))
	}
	is := c.schedule("s0")
	to, task := c.nextTick(is)
	c.reschedule(is.Version, to, task)
	c.ok("remove", c.unschedule("s1", c.schedule("s1").Version))
	_, before := c.schedules()
	if !c.crash() {
		return
	}
	names, after := c.schedules()
	if !slices.Equal(names, []string{"s0", "s2"}) {
		c.Fatalf("the schedules %v have survived, want s0 and s2", names)
	}
	for i := range after {
		if !reflect.DeepEqual(inUTC(after[i]), inUTC(before[i])) {
			c.Errorf("the schedule was\n%+v, and has become\n%+v", before[i], after[i])
		}
	}
	c.is(queue.Waiting, task.ID)
	c.reschedule(is.Version, to, task) // repeats the call whose answer was lost
	other, again := c.nextTick(is)
	c.refused("the same tick again", c.Store.Reschedule(c.Context(), c.now,
		queue.Reschedule{Name: "s0", Was: is.Version, To: &other, Tasks: []queue.NewTask{again}}), queue.ErrChanged)
	c.started(9, task.ID)
}
