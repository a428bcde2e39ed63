package stint_test

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"weak"

	"github.com/stintgo/stint"
)

func TestB4_GoWithHandsTheArgumentOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		add := func(_ context.Context, text string) (int, error) { return strconv.Atoi(text) }
		good, bad := stint.GoWith(t.Context(), s, add, "42"), stint.GoWith(t.Context(), s.Key("a"), add, "text")
		text := stint.Then(t.Context(), s, good, toText)
		if v, err := text.Wait(t.Context()); v != "42" || err != nil {
			t.Errorf("Wait = %q, %v; want 42, nil", v, err)
		}
		if _, err := bad.Wait(t.Context()); err == nil {
			t.Error("the function's error is lost")
		}
		atRest(t, s)
	})
}

// The future is the one thing that GoWith allocates, also with an argument that a closure would
// have to be allocated for.
func TestB4_GoWithAllocatesTheFutureOnly(t *testing.T) {
	const batch = 1000
	s := stint.New(4, stint.Config{})
	futures := make([]*stint.Future[int], batch)
	numbers := make([]int, batch)
	twice := func(_ context.Context, n *int) (int, error) { return 2 * *n, nil }
	allocs := testing.AllocsPerRun(20, func() {
		for i := range futures {
			futures[i] = stint.GoWith(t.Context(), s, twice, &numbers[i])
		}
		for _, f := range slices.Backward(futures) {
			_, _ = f.Wait(t.Context())
		}
	})
	if per := allocs / batch; per > 1.1 {
		t.Errorf("GoWith and Wait make %.2f allocations a future, want 1", per)
	}
}

// A future keeps its value, but neither the argument of a function that has returned nor that of
// one that is not called.
func TestB4_GoWithLetsGoOfTheArgument(t *testing.T) {
	s, shut := stint.New(1, stint.Config{}), stint.New(1, stint.Config{})
	shut.Close()
	read := func(_ context.Context, object *[64]int) (int, error) { return object[0], nil }
	for name, c := range map[string]struct {
		s     stint.Scheduler
		taken bool
	}{
		"returned": {s, false}, "returned, with a key": {s.Key("a"), false}, "refused": {shut, false},
		"cancelled": {s, true}, "cancelled, with a key": {s.Key("a"), true},
	} {
		f, argument := func() (*stint.Future[int], weak.Pointer[[64]int]) {
			object := new([64]int)
			if c.taken {
				defer mustTry(t, s).Release()
			}
			f := stint.GoWith(t.Context(), c.s, read, object)
			if c.taken {
				f.Cancel(errAsked)
			}
			_, _ = f.Wait(t.Context())
			return f, weak.Make(object)
		}()
		if !collected(argument) {
			t.Errorf("%s: the future keeps the argument", name)
		}
		runtime.KeepAlive(f)
	}
}
