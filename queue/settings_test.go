package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
)

// A pause outlives programs that set their limits, and does not touch those.
func TestC4_PauseOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, queue.Config{})
		done := 0
		r.Handle("k", func(context.Context, *queue.Attempt) error { done++; return nil })
		r.start()
		limits := queue.Settings{Max: 1, PerKey: 7}
		if err := r.Configure(t.Context(), "default", limits); err != nil {
			t.Fatal(err)
		}
		if err := r.PauseQueue(t.Context(), "default", queue.Pause{By: "ann", Reason: "the provider is down"}); err != nil {
			t.Fatal(err)
		}
		if err := r.Configure(t.Context(), "default", limits); err != nil { // the program starts again
			t.Fatal(err)
		}
		id := r.submit("k", queue.Options{})
		time.Sleep(time.Hour)
		r.is(id, queue.Held)
		why, err := r.Why(t.Context(), id)
		if err != nil || len(why) == 0 || why[0].By != "ann: the provider is down" {
			t.Errorf("it waits because of %+v, error %v; want that ann paused it", why, err)
		}
		if err := r.ResumeQueue(t.Context(), "default"); err != nil {
			t.Fatal(err)
		}
		r.is(id, queue.Succeeded)
		set, err := r.Settings(t.Context())
		if err != nil || set["default"].InForce.Settings != limits || done != 1 {
			t.Errorf("the settings are %+v, error %v; want those of the program", set, err)
		}
		r.end()
	})
}

// A program that sets one limit drops none of the others, and one that starts does not
// undo what an operator has set.
func TestC4_ProgramsStartBesideOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, queue.Config{})
		r.start()
		declare := func(s queue.Settings) {
			t.Helper()
			if err := r.Configure(t.Context(), "default", s); err != nil {
				t.Fatal(err)
			}
		}
		inForce := func(want queue.Settings) {
			t.Helper()
			set, err := r.Settings(t.Context())
			if err != nil || set["default"].InForce.Settings != want {
				t.Fatalf("in force is %+v, error %v; want %+v", set["default"].InForce, err, want)
			}
		}
		limits := queue.Settings{PerKey: 2, Rate: queue.Rate{PerSecond: 50}, KeyRate: queue.Rate{PerSecond: 5}}
		declare(limits)
		declare(queue.Settings{Max: 4})
		limits.Max = 4
		inForce(limits)
		ann := queue.Change{Operator: true, By: "ann", Set: queue.Settings{Max: 1}}
		if err := r.Change(t.Context(), "default", ann); err != nil {
			t.Fatal(err)
		}
		declare(limits) // the program starts again
		with := limits
		with.Max = 1
		inForce(with)
		if err := r.Unset(t.Context(), "default", queue.FieldRate, queue.FieldMax); err != nil {
			t.Fatal(err)
		}
		with.Rate = queue.Rate{}
		inForce(with)
		declare(limits)
		ann = queue.Change{Operator: true, By: "ann", Unset: queue.Fields()}
		if err := r.Change(t.Context(), "default", ann); err != nil {
			t.Fatal(err)
		}
		inForce(limits)
		r.end()
	})
}

// A change of settings cannot pause a queue: a Paused in it is refused, and not ignored.
func TestC4_ChangeThatPauses(t *testing.T) {
	r := newRig(t, 1, queue.Config{})
	paused := queue.Settings{Max: 3, Paused: &queue.Pause{By: "ann"}}
	for what, err := range map[string]error{
		"Configure": r.Configure(t.Context(), "default", paused),
		"Change":    r.Change(t.Context(), "default", queue.Change{Operator: true, Set: paused}),
	} {
		if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "call PauseQueue") {
			t.Errorf("%s: error %v", what, err)
		}
	}
	if set, err := r.Settings(t.Context()); err != nil || set["default"].InForce.Max != 0 {
		t.Errorf("the settings are %+v, error %v", set, err)
	}
}
