package simulation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

var scheduleNames = []string{"s1", "s2", "s3"}

// byView is the key of the view in the contexts of operators.
type byView struct{}

// reschedule changes schedules as an operator author has not read them yet.
func (sc *scenario) reschedule(what string, do func(ctx context.Context, q *queue.Queue) error) {
	sc.commands++
	v := &view{operator: fmt.Sprint("operator", sc.commands), busy: make(map[queue.ID]bool)}
	author := pick(sc.rng, sc.w.nodes...)
	if author.killed {
		author = sc.w.client
	}
	sc.ask(what, func() error { return do(context.WithValue(sc.w.ctx, byView{}, v), author.q) })
}

// schedule declares a schedule.
func (sc *scenario) schedule() {
	if !sc.schedules {
		return
	}
	payload, _ := json.Marshal(args{sc.rng.IntN(200)})
	s := queue.Schedule{
		Name: pick(sc.rng, scheduleNames...), Cron: pick(sc.rng, slices.Sorted(maps.Keys(cronTable))...),
		Zone:   pick(sc.rng, "", "", "UTC"),
		Missed: pick(sc.rng, "", queue.MissedOnce, queue.MissedSkip, queue.MissedAll),
		Task: queue.Spec{
			Kind:    pick(sc.rng, kindNames...),
			Payload: payload,
			Options: queue.Options{
				Queue:       pick(sc.rng, queueNames...),
				Key:         pick(sc.rng, keyNames...),
				Tier:        stint.Priority(sc.rng.IntN(3) - 1),
				MaxAttempts: 1 + sc.rng.IntN(5),
				MaxCrashes:  6,
			},
		},
	}
	s.SkipOverlap = s.Missed != queue.MissedAll && sc.w.chance(2)
	if sc.w.chance(4) {
		s.Task.Group = s.Name
	}
	sc.reschedule("makes schedule "+s.Name+" "+s.Cron, func(ctx context.Context, q *queue.Queue) error {
		return q.Schedule(ctx, s)
	})
}

// pauseSchedule pauses a schedule, or resumes it.
func (sc *scenario) pauseSchedule() {
	name := pick(sc.rng, scheduleNames...)
	if sc.w.chance(3) {
		sc.reschedule("pauses schedule "+name, func(ctx context.Context, q *queue.Queue) error {
			return q.PauseSchedule(ctx, name, queue.Pause{By: "operator"})
		})
		return
	}
	sc.reschedule("resumes schedule "+name, func(ctx context.Context, q *queue.Queue) error {
		return q.ResumeSchedule(ctx, name)
	})
}

// unschedule removes schedules.
func (sc *scenario) unschedule(names ...string) {
	for _, name := range names {
		sc.reschedule("removes schedule "+name, func(ctx context.Context, q *queue.Queue) error {
			return q.Unschedule(ctx, name)
		})
	}
}

// setWall sets the wall clock of a process, which its schedules follow.
func (sc *scenario) setWall() {
	h := pick(sc.rng, sc.w.hosts...)
	ahead := upTo(sc.rng, 4*time.Minute) - 2*time.Minute
	if sc.w.chance(6) {
		ahead = upTo(sc.rng, 15*time.Minute)
	}
	h.ahead.Store(int64(ahead))
	sc.maxAhead = max(sc.maxAhead, ahead)
	sc.w.log("the clock on the wall of %s is set %s from the right time", h.name, ahead)
}

// schedulesEnd removes the schedules when they have ticked for long enough after the last
// fault, and reports whether there are any left.
func (sc *scenario) schedulesEnd() (left bool) {
	all := slices.Sorted(maps.Keys(sc.w.checker.schedules))
	if len(all) > 0 && sc.w.now().After(sc.calmFrom.Add(4*sc.w.poll+2*time.Minute)) {
		sc.unschedule(all...)
	}
	return len(all) > 0
}
