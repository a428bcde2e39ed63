package stint_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stintgo/stint"
)

// What was not made with its constructor says so, in every method and function, also
// with a context that has ended.
func TestB4_ZeroSchedulerPanics(t *testing.T) {
	made := stint.New(1, stint.Config{})
	nothing := func(context.Context) (int, error) { return 0, nil }
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{t.Context(), ended} {
		var s stint.Scheduler
		wantZero(t, "Scheduler: make one with New", map[string]func(){
			"Acquire":    func() { _, _ = s.Acquire(ctx) },
			"TryAcquire": func() { _, _ = s.TryAcquire(ctx) },
			"At":         func() { s.At(stint.High) },
			"Key":        func() { s.Key("k") },
			"Weight":     func() { s.Weight(1) },
			"Resize":     func() { s.Resize(1) },
			"SetCaps":    func() { s.SetCaps(stint.Caps{}) },
			"SetPerKey":  func() { s.SetPerKey(1) },
			"Pause":      func() { s.Pause("me") },
			"Resume":     func() { s.Resume() },
			"Clear":      func() { s.Clear() },
			"Close":      func() { s.Close() },
			"Drain":      func() { _ = s.Drain(ctx) },
			"WaitIdle":   func() { _ = s.WaitIdle(ctx) },
			"Stats":      func() { s.Stats() },
			"Why":        func() { s.Why() },
			"Waiting":    func() { s.Waiting() },
			"Run":        func() { _, _ = stint.Run(ctx, s, nothing) },
			"RunWith": func() {
				_, _ = stint.RunWith(ctx, s, func(context.Context, int) (int, error) { return 0, nil }, 1)
			},
			"Go": func() { stint.Go(ctx, s, nothing) },
			"GoWith": func() {
				stint.GoWith(ctx, s, func(context.Context, int) (int, error) { return 0, nil }, 1)
			},
			"TryGo": func() { stint.TryGo(ctx, s, nothing) },
			"Then": func() {
				stint.Then(ctx, s, stint.Go(t.Context(), made, nothing), func(context.Context, int) (int, error) { return 0, nil })
			},
			"Catch": func() {
				f := stint.Go(t.Context(), made, nothing)
				stint.Catch(ctx, s, f, func(context.Context, error) (int, error) { return 0, nil })
			},
			"NewGroup": func() { stint.NewGroup(ctx, s) },
			"Map": func() {
				stint.Map(ctx, s, slices.Values([]int{1}), func(context.Context, int) (int, error) { return 0, nil })
			},
			"MapUnordered": func() {
				stint.MapUnordered(ctx, s, slices.Values([]int{1}), func(context.Context, int) (int, error) { return 0, nil })
			},
		})
	}
}

func TestD7_ZeroGroupPanics(t *testing.T) {
	for _, g := range []*stint.Group{nil, {}} {
		wantZero(t, "Group: make one with NewGroup", map[string]func(){
			"Go":     func() { g.Go(func(context.Context) error { return nil }) },
			"TryGo":  func() { g.TryGo(func(context.Context) error { return nil }) },
			"Wait":   func() { _ = g.Wait() },
			"Cancel": func() { g.Cancel(nil) },
		})
	}
}

func TestD6_ZeroFuturePanics(t *testing.T) {
	s := stint.New(1, stint.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, f := range []*stint.Future[int]{nil, {}} {
		wantZero(t, "Future: make one with Go or NewPromise", map[string]func(){
			"Wait":        func() { _, _ = f.Wait(ended) },
			"Done":        func() { f.Done() },
			"Cancel":      func() { f.Cancel(nil) },
			"SetPriority": func() { f.SetPriority(stint.High) },
			"Teardown":    func() { f.Teardown(func() {}) },
			"Why":         func() { f.Why() },
			"Then": func() {
				stint.Then(ended, s, f, func(context.Context, int) (int, error) { return 0, nil })
			},
			"Catch": func() {
				stint.Catch(ended, s, f, func(context.Context, error) (int, error) { return 0, nil })
			},
		})
	}
}

func TestB10_ZeroLimiterPanics(t *testing.T) {
	ctx := t.Context()
	var l stint.Limiter
	wantZero(t, "Limiter: make one with NewLimiter", map[string]func(){
		"Try":         func() { l.Try(0) },
		"TryAfter":    func() { l.TryAfter(-1) },
		"Wait":        func() { _ = l.Wait(ctx, 1) },
		"Wait below":  func() { _ = l.Wait(ctx, -1) },
		"At":          func() { l.At(stint.High) },
		"Key":         func() { l.Key("a") },
		"SetPerKey":   func() { l.SetPerKey(1) },
		"Delay":       func() { l.Delay(-1) },
		"Stats":       func() { l.Stats() },
		"SetRate":     func() { l.SetRate(1) },
		"SetCapacity": func() { l.SetCapacity(1) },
		"Why":         func() { l.Why(-1) },
		"Waiting":     func() { l.Waiting() },
		"Reader":      func() { l.Reader(ctx, strings.NewReader("")) },
		"Writer":      func() { l.Writer(ctx, &bytes.Buffer{}) },
	})
}

func wantZero(t *testing.T, what string, calls map[string]func()) {
	t.Helper()
	for name, fn := range calls {
		if got := panicOf(fn); got != "stint: zero "+what {
			t.Errorf("%s of the zero value panics with %v, want that it names what to call", name, got)
		}
	}
}
