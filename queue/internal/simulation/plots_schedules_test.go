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

// reschedule has somebody change schedules, as one who has seen nothing yet.
func (p *plots) reschedule(what string, do func(ctx context.Context, q *queue.Queue) error) {
	p.commands++
	v := &view{operator: fmt.Sprint("operator", p.commands), busy: make(map[queue.ID]bool)}
	who := pick(p.rng, p.w.nodes...)
	if who.killed {
		who = p.w.client
	}
	p.ask(what, func() error { return do(context.WithValue(p.w.ctx, byView{}, v), who.q) })
}

// schedule declares a schedule.
func (p *plots) schedule() {
	if !p.schedules {
		return
	}
	payload, _ := json.Marshal(args{p.rng.IntN(200)})
	s := queue.Schedule{
		Name: pick(p.rng, scheduleNames...), Cron: pick(p.rng, slices.Sorted(maps.Keys(cronTable))...),
		Zone:   pick(p.rng, "", "", "UTC"),
		Missed: pick(p.rng, "", queue.MissedOnce, queue.MissedSkip, queue.MissedAll),
		Task: queue.Spec{
			Kind:    pick(p.rng, kindNames...),
			Payload: payload,
			Options: queue.Options{
				Queue:       pick(p.rng, queueNames...),
				Key:         pick(p.rng, keyNames...),
				Tier:        stint.Priority(p.rng.IntN(3) - 1),
				MaxAttempts: 1 + p.rng.IntN(5),
				MaxCrashes:  6,
			},
		},
	}
	s.SkipOverlap = s.Missed != queue.MissedAll && p.w.chance(2)
	if p.w.chance(4) {
		s.Task.Group = s.Name
	}
	p.reschedule("makes schedule "+s.Name+" "+s.Cron, func(ctx context.Context, q *queue.Queue) error {
		return q.Schedule(ctx, s)
	})
}

// pauseSchedule pauses a schedule, or ends that.
func (p *plots) pauseSchedule() {
	name := pick(p.rng, scheduleNames...)
	if p.w.chance(3) {
		p.reschedule("pauses schedule "+name, func(ctx context.Context, q *queue.Queue) error {
			return q.PauseSchedule(ctx, name, queue.Pause{By: "operator"})
		})
		return
	}
	p.reschedule("resumes schedule "+name, func(ctx context.Context, q *queue.Queue) error {
		return q.ResumeSchedule(ctx, name)
	})
}

// unschedule removes schedules.
func (p *plots) unschedule(names ...string) {
	for _, name := range names {
		p.reschedule("removes schedule "+name, func(ctx context.Context, q *queue.Queue) error {
			return q.Unschedule(ctx, name)
		})
	}
}

// setWall sets a clock on the wall, which schedules go by.
func (p *plots) setWall() {
	h := pick(p.rng, p.w.hosts...)
	ahead := upTo(p.rng, 4*time.Minute) - 2*time.Minute
	if p.w.chance(6) {
		ahead = upTo(p.rng, 15*time.Minute)
	}
	h.ahead.Store(int64(ahead))
	p.maxAhead = max(p.maxAhead, ahead)
	p.w.log("the clock on the wall of %s is set %s from the right time", h.name, ahead)
}

// schedulesEnd removes the schedules when they have gone on for long enough after
// all that went wrong, and reports whether there are any left.
func (p *plots) schedulesEnd() (left bool) {
	all := slices.Sorted(maps.Keys(p.w.judge.schedules))
	if len(all) > 0 && p.w.now().After(p.calmFrom.Add(4*p.w.poll+2*time.Minute)) {
		p.unschedule(all...)
	}
	return len(all) > 0
}
