package queue_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cron"
)

func in(t *testing.T, zone string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func parse(t *testing.T, expr string) cron.Schedule {
	t.Helper()
	s, err := cron.Parse(expr)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// modelDue returns what a schedule does, from all of its ticks.
func modelDue(missed queue.Missed, expr cron.Schedule, first, now time.Time) (ticks []time.Time, next time.Time) {
	ticks = expr.Between(first.Add(-1), now, 1<<30)
	newest := ticks[len(ticks)-1]
	next, _ = expr.Next(now)
	switch {
	case missed == queue.MissedAll:
		ticks = ticks[max(0, len(ticks)-queue.MissedMax):]
	case missed == queue.MissedSkip && now.Sub(newest) > queue.TickGrace:
		ticks = nil
	default:
		ticks = []time.Time{newest}
	}
	return ticks, next
}

func equal(a, b []time.Time) bool { return slices.EqualFunc(a, b, time.Time.Equal) }

// What a schedule does about ticks that have come is what follows from all of
// them, over months in which clocks change and processes stand still, whatever
// the policy.
func TestC8_ScheduleModel(t *testing.T) {
	rnd := seeded.Rand(t)
	exprs := []string{
		"* * * * *", "*/10 * * * *", "30 2 * * *", "0 9 * * mon-fri", "0 0 1 * *", "15 1-3 * * *", "* 4 * * sun",
		"@every 7s", "@every 36h", "@yearly", "0 12 29 2 *",
	}
	for _, zone := range []string{"America/New_York", "Australia/Lord_Howe", "Europe/Berlin", "UTC"} {
		loc := in(t, zone)
		for _, expr := range exprs {
			for _, missed := range []queue.Missed{"", queue.MissedOnce, queue.MissedSkip, queue.MissedAll} {
				now := time.Date(2026, time.Month(1+rnd.IntN(12)), 1, 0, 0, 0, 0, loc).Add(time.Duration(rnd.Int64N(1e15)))
				s := queue.ScheduleState{Schedule: queue.Schedule{Name: "s", Cron: expr, Zone: zone, Missed: missed}}
				if err := lives(rnd, s, parse(t, expr), now); err != nil {
					t.Fatalf("%s in %s, %q: %v", expr, zone, missed, err)
				}
			}
		}
	}
}

// lives has a schedule looked at for months, and compares what it does.
func lives(rnd *rand.Rand, s queue.ScheduleState, expr cron.Schedule, now time.Time) error {
	s.Next, _ = expr.Next(now)
	for range 15 {
		now = s.Next.Add(standstill(rnd))
		wantTicks, wantNext := modelDue(s.Missed, expr, s.Next, now)
		for first := true; first || len(wantTicks) > 0; first = false {
			ticks, next, err := s.Due(now)
			if err != nil {
				return err
			}
			if len(ticks) > len(wantTicks) || !equal(ticks, wantTicks[:len(ticks)]) {
				return fmt.Errorf("from %v at %v: ticks\n%v, want\n%v", s.Next, now, ticks, wantTicks)
			}
			if wantTicks = wantTicks[len(ticks):]; len(wantTicks) > 0 {
				if len(ticks) == 0 || !next.Equal(wantTicks[0]) {
					return fmt.Errorf("from %v at %v: after %d ticks the next is %v, want %v",
						s.Next, now, len(ticks), next, wantTicks[0])
				}
			} else if !next.Equal(wantNext) {
				return fmt.Errorf("from %v at %v: the next is %v, want %v", s.Next, now, next, wantNext)
			}
			s.Next = next
		}
	}
	return nil
}

// standstill returns how late a timetable is read: mostly by nearly nothing, sometimes by days.
func standstill(rnd *rand.Rand) time.Duration {
	most := []time.Duration{1, time.Second, time.Minute, 2 * time.Minute, 3 * time.Hour, 30 * time.Hour, 70 * time.Hour}
	return time.Duration(rnd.Int64N(int64(most[rnd.IntN(len(most))])))
}

// A cursor that lies very far back, or that is not a tick of the expression as this
// process reads it, costs no time and starts no loop.
func TestC8_CursorsFarAway(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 30, 0, time.UTC)
	for _, first := range []time.Time{time.Unix(0, 0), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), now.Add(-1)} {
		for _, expr := range []string{"* * * * *", "@every 1s", "0 0 29 2 *"} {
			s := queue.ScheduleState{Schedule: queue.Schedule{Name: "s", Cron: expr}, Next: first}
			ticks, next, err := s.Due(now)
			if err != nil || len(ticks) != 1 || ticks[0].Before(first) || !next.After(now) {
				t.Errorf("%s from %v: ticks %v, next %v, error %v", expr, first, ticks, next, err)
			}
		}
	}
}

// Each mistake in a schedule is an error that says what to do.
func TestC8_ScheduleErrors(t *testing.T) {
	r := newRig(t, 1, queue.Config{})
	sound := queue.Schedule{Name: "nightly", Cron: "@daily", Task: queue.Spec{Kind: "k"}}
	for want, change := range map[string]func(*queue.Schedule){
		"name":   func(s *queue.Schedule) { s.Name = "" },
		"minute": func(s *queue.Schedule) { s.Cron = "61 * * * *" },
		"no time zone \"Mars/Olympus_Mons\": give a name of the IANA database": func(s *queue.Schedule) {
			s.Zone = "Mars/Olympus_Mons"
		},
		"the package tzdata":    func(s *queue.Schedule) { s.Zone = "../zone" },
		"may differ":            func(s *queue.Schedule) { s.Zone = "Local" },
		"it is once, skip or":   func(s *queue.Schedule) { s.Missed = "never" },
		"take once or skip":     func(s *queue.Schedule) { s.Missed, s.SkipOverlap = queue.MissedAll, true },
		"kind":                  func(s *queue.Schedule) { s.Task.Kind = "" },
		"cron says when":        func(s *queue.Schedule) { s.Task.RunAt = time.Now() },
		"run_at or a deadline":  func(s *queue.Schedule) { s.Task.Deadline = time.Now() },
		"skip_overlap":          func(s *queue.Schedule) { s.Task.Unique = "once" },
		"let its handler":       func(s *queue.Schedule) { s.Task.After = []queue.ID{{1}} },
		"is of a batch":         func(s *queue.Schedule) { s.Task.AfterBatch = queue.ID{1} },
		"comes after others":    func(s *queue.Schedule) { s.Task.Batch = queue.ID{1} },
		"rename schedule":       func(s *queue.Schedule) { s.Task.Labels = map[string]string{"tick": "tock"} },
		"that ticks set":        func(s *queue.Schedule) { s.Task.Labels = map[string]string{"schedule": "mine"} },
		`schedule "nightly": `:  func(s *queue.Schedule) { s.Cron = "" },
		"characters that are n": func(s *queue.Schedule) { s.Name = "a\x00b" },
	} {
		s := sound
		change(&s)
		if err := r.Schedule(t.Context(), s); !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if all, err := r.Schedules(t.Context()); len(all) != 0 || err != nil {
		t.Errorf("there are the schedules %v, error %v", all, err)
	}
}
