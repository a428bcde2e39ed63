package queue

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"
)

// ticker submits the tasks of schedules whose tick has come. Every process that runs a
// queue has one, for all schedules of the store, and all of them try: the process that
// changes the schedule's version first submits the task in the same step, and the others
// find that it has changed.
type ticker struct {
	q     *Queue
	known map[string]*known // by name
}

// known is what this process knows of a version of a schedule.
type known struct {
	ScheduleState
	table timetable
	err   error     // why there is no timetable in this process
	retry time.Time // when to look again after an error of this process
}

// The pause between two attempts at a tick is as long as the attempts have taken so far,
// within these limits.
const (
	tickRetryMin = time.Second
	tickRetryMax = time.Minute
)

// tickUntil submits the tasks of all ticks until ctx ends. It looks at the schedules when
// the next tick comes, when this process has changed a schedule, and at least every
// Config.Poll, for changes of other processes. A stale view does no harm: a call that is
// based on it is refused. At its end it wakes another call of Run, which may not know of
// a change that this one has seen.
func (s *session) tickUntil(ctx context.Context) {
	defer signal(s.q.schedules.changed)
	k := ticker{q: s.q, known: make(map[string]*known)}
	wake := time.NewTimer(s.q.cfg.Poll)
	defer wake.Stop()
	for ctx.Err() == nil { // even if another event came together with its end
		taken(s.q.schedules.changed) // this look sees the change too
		wait := k.tick(ctx).Sub(s.q.wall())
		if wait <= 0 {
			continue // a timer must not be set to 0: see soonest
		}
		wake.Reset(min(wait, s.q.cfg.Poll)) // the clock may have been set back meanwhile
		select {
		case <-wake.C:
		case <-s.q.schedules.changed:
		case <-ctx.Done():
		}
	}
}

// tick handles what is due now, and returns when to look again. It reads the clock once:
// the clock may be set back between two readings, and they would disagree on what is due.
func (k *ticker) tick(ctx context.Context) time.Time {
	all, err := k.q.store.Schedules(ctx)
	now := k.q.wall()
	next := now.Add(k.q.cfg.Poll)
	if err != nil && ctx.Err() == nil {
		k.q.cfg.Logger.Error("read schedules", slog.Any("error", err))
	}
	before := k.known
	k.known = make(map[string]*known, len(all))
	if err != nil {
		maps.Copy(k.known, before) // those that could not be read
	}
	var due []*known
	for i := range all {
		was := before[all[i].Name]
		s := know(was, &all[i])
		if k.known[s.Name] = s; s != was {
			k.compare(s, now)
		}
		switch at := s.due(now); {
		case at.IsZero():
		case !at.After(now):
			due = append(due, s)
		case at.Before(next):
			next = at
		}
	}
	for _, at := range k.serveAll(ctx, due, now) {
		if at.Before(next) {
			next = at
		}
	}
	return next
}

// know returns what is known of a schedule that has been read again.
func know(was *known, s *ScheduleState) *known {
	switch {
	case was != nil && was.Version == s.Version:
		return was
	case was != nil && was.err == nil && was.Cron == s.Cron && was.Zone == s.Zone:
		return &known{ScheduleState: *s, table: was.table} // zones are files, and ticks come every second
	}
	table, err := s.timetable()
	return &known{ScheduleState: *s, table: table, err: err}
}

// compare logs a warning if the clocks of two processes are far apart: a clock that is a
// year ahead can move a cursor ahead by a year, and the schedule does not tick in
// between.
func (k *ticker) compare(s *known, now time.Time) {
	if ahead := s.Last.At.Sub(now); ahead > TickGrace {
		k.q.cfg.Logger.Warn("a tick was submitted that has not come here: the clock of this system or of another is wrong",
			slog.String("schedule", s.Name), slog.Time("tick", s.Last.At), slog.Duration("ahead", ahead))
	}
}

// due returns when to look at a schedule; zero: not before it changes. No process delays
// a tick for longer than tickRetryMax, so a longer delay comes from a clock that was
// ahead of this one, of another process or of this one before it was set back. It is
// ignored: otherwise the schedule would stand still for as long as that clock was ahead.
func (s *known) due(now time.Time) time.Time {
	if s.Paused != nil || s.Next.IsZero() {
		return time.Time{}
	}
	at := s.Next
	for _, later := range []time.Time{s.Retry, s.retry} {
		if later.After(at) && later.Sub(now) <= tickRetryMax {
			at = later
		}
	}
	return at
}

// serveAll serves schedules, several at a time: at midnight many are due, and concurrent
// calls share the syncs of the store.
func (k *ticker) serveAll(ctx context.Context, due []*known, now time.Time) (again []time.Time) {
	const atOnce = 16
	again = make([]time.Time, len(due))
	free := make(chan struct{}, atOnce)
	var serving sync.WaitGroup
	for i, s := range due {
		free <- struct{}{}
		serving.Go(func() {
			again[i] = k.serve(ctx, s, now)
			<-free
		})
	}
	serving.Wait()
	return again
}

// serve handles the due ticks of a schedule, and returns when to look at it again.
func (k *ticker) serve(ctx context.Context, s *known, now time.Time) time.Time {
	next, err := k.fire(ctx, s, now)
	switch {
	case err == nil && next.IsZero(), ctx.Err() != nil:
		return now.Add(k.q.cfg.Poll)
	case err == nil:
		return next
	case errors.Is(err, ErrChanged):
		return now // to see its new state
	}
	return k.failed(ctx, s, now, err)
}

// fire submits the tasks of the due ticks, and returns the next tick.
func (k *ticker) fire(ctx context.Context, s *known, now time.Time) (next time.Time, err error) {
	if s.err != nil {
		if s.table, s.err = s.timetable(); s.err != nil { // a zone may have been installed meanwhile
			return next, s.err
		}
	}
	ticks, next := s.table.due(&s.ScheduleState, now)
	first, busy := s.Next, false
	if s.SkipOverlap && len(ticks) > 0 {
		if busy, err = k.busy(ctx, s.Last.Task); err != nil {
			return next, err
		}
	}
	if busy {
		ticks = nil
	}
	err = k.submit(ctx, s, ticks, next)
	for noRoom(err) && len(ticks) > 1 {
		half := len(ticks) / 2
		ticks, next = ticks[:half], ticks[half]
		err = k.submit(ctx, s, ticks, next)
	}
	if err != nil {
		return next, err
	}
	switch about := []any{slog.String("schedule", s.Name), slog.Time("tick", first), slog.Time("next", next)}; {
	case busy:
		k.q.cfg.Logger.Info("tick left out: the task of the last one is unfinished", about...)
	case len(ticks) == 0 || !ticks[0].Equal(first):
		k.q.cfg.Logger.Warn("ticks missed", append(about, slog.Int("made_up_for", len(ticks)))...)
	}
	return next, nil
}

// noRoom reports whether a queue, or a call, may have room for some of the tasks if not for all.
func noRoom(err error) bool { return errors.Is(err, ErrFull) || errors.Is(err, ErrTooLarge) }

// submit submits the tasks of ticks, and moves the schedule to the next one.
func (k *ticker) submit(ctx context.Context, s *known, ticks []time.Time, next time.Time) error {
	now := k.q.clock.Now()
	to := s.ScheduleState
	to.Version, to.Next, to.Retry = k.q.ids.New(now), next, time.Time{}
	r := Reschedule{Name: s.Name, Was: s.Version, To: &to}
	for _, tick := range ticks {
		id := k.q.ids.New(now)
		r.Tasks = append(r.Tasks, s.task(id, tick))
		to.Last, to.Error = Tick{At: tick, Task: id}, ""
	}
	return k.q.store.Reschedule(ctx, now, r)
}

// busy reports whether a task exists and is unfinished.
func (k *ticker) busy(ctx context.Context, id ID) (bool, error) {
	if id.IsZero() {
		return false, nil
	}
	t, err := k.q.Get(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && !t.State.Finished(), err
}

// failed handles a tick whose task could not be submitted, and returns when to try again.
// If the store has refused the task, failed records the error in the schedule, so that all
// processes together try no more often than one, and operators see it. It also records an
// error of this process, such as a time zone that this system lacks, but only if no other
// process has submitted the task in time. Any other error delays this process alone.
func (k *ticker) failed(ctx context.Context, s *known, now time.Time, err error) time.Time {
	late := now.Sub(s.Next)
	s.retry = now.Add(min(max(late, tickRetryMin), tickRetryMax))
	record := refused(err)
	if s.err != nil {
		record = late > TickGrace && s.Error != err.Error()
	}
	if record {
		at := k.q.clock.Now()
		to := s.ScheduleState
		to.Version, to.Error, to.Retry = k.q.ids.New(at), err.Error(), s.retry
		switch recordErr := k.q.store.Reschedule(ctx, at, Reschedule{Name: s.Name, Was: s.Version, To: &to}); {
		case errors.Is(recordErr, ErrChanged):
			return now
		case recordErr != nil:
			err = errors.Join(err, recordErr)
		}
	}
	k.q.cfg.Logger.Error("tick", slog.String("schedule", s.Name), slog.Time("tick", s.Next), slog.Any("error", err))
	return s.retry
}

// refused reports whether the store has refused a task as invalid, or because the queue or the store is full.
func refused(err error) bool {
	return errors.Is(err, ErrInvalid) || noRoom(err)
}
