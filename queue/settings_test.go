package queue_test

import (
	"context"
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
		id := r.submit("k", queue.Spec{})
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
		if err != nil || set["default"] != limits || done != 1 {
			t.Errorf("the settings are %+v, error %v; want those of the program", set, err)
		}
		r.end()
	})
}
