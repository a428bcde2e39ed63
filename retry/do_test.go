package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/retry"
)

var (
	errFailed = errors.New("failed")
	errEnded  = errors.New("ended")
)

// failing returns a function that always fails with err, and the times of its
// calls since the start.
func failing(err error) (fn func(context.Context) error, calls *[]time.Duration) {
	start := time.Now()
	calls = new([]time.Duration)
	return func(context.Context) error {
		*calls = append(*calls, time.Since(start))
		return err
	}, calls
}

func wantCalls(t *testing.T, got *[]time.Duration, want ...time.Duration) {
	t.Helper()
	if !slices.Equal(*got, want) {
		t.Errorf("called at %v, want %v", *got, want)
	}
}

func TestA7_DoDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn, calls := failing(errFailed)
		err := retry.Do(t.Context(), retry.Policy{}, fn)
		wantCalls(t, calls, 0, 200*time.Millisecond, 600*time.Millisecond)
		if !errors.Is(err, errFailed) || err.Error() != "retry: gave up after attempt 3: failed" {
			t.Errorf("error %v", err)
		}
	})
}

func TestA7_DoValueReturnsTheFirstSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts []int
		v, err := retry.DoValue(t.Context(), retry.Policy{}, func(ctx context.Context) (string, error) {
			n := retry.Attempt(ctx)
			attempts = append(attempts, n)
			if n < 2 {
				return "half", errFailed
			}
			return "whole", nil
		})
		if v != "whole" || err != nil || !slices.Equal(attempts, []int{1, 2}) {
			t.Errorf("%q, %v after attempts %v", v, err, attempts)
		}
		v, err = retry.DoValue(t.Context(), retry.Policy{}, func(context.Context) (string, error) {
			return "half", errFailed
		})
		if v != "" || err == nil {
			t.Errorf("%q, %v, want a zero value with an error", v, err)
		}
	})
}

func TestA7_AttemptIsTheInnermost(t *testing.T) {
	if n := retry.Attempt(t.Context()); n != 0 {
		t.Errorf("outside: %d", n)
	}
	synctest.Test(t, func(t *testing.T) {
		var got []int
		_ = retry.Do(t.Context(), retry.Policy{Attempts: 2}, func(outer context.Context) error {
			_ = retry.Do(outer, retry.Policy{Attempts: 2}, func(inner context.Context) error {
				got = append(got, retry.Attempt(outer)*10+retry.Attempt(inner))
				return errFailed
			})
			return errFailed
		})
		if !slices.Equal(got, []int{11, 12, 21, 22}) {
			t.Errorf("attempts %v", got)
		}
	})
}

func TestA7_DoStopsOnPermanent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn, calls := failing(fmt.Errorf("wrapped: %w", retry.Permanent(io.ErrUnexpectedEOF)))
		err := retry.Do(t.Context(), retry.Policy{}, fn)
		wantCalls(t, calls, 0)
		if !errors.Is(err, io.ErrUnexpectedEOF) || !retry.IsPermanent(err) ||
			err.Error() != "wrapped: unexpected EOF" {
			t.Errorf("error %v", err)
		}
	})
	if retry.Permanent(nil) != nil || retry.IsPermanent(nil) || retry.IsPermanent(errFailed) {
		t.Error("an unmarked error is permanent")
	}
}

func TestA7_DoStopsWhenIfRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		cfg := retry.Config{
			Policy: retry.Policy{Attempts: 10}, If: func(err error) bool { return errors.Is(err, errFailed) },
		}
		err := cfg.Do(t.Context(), func(context.Context) error {
			if n++; n < 3 {
				return errFailed
			}
			return errEnded
		})
		if n != 3 || err != errEnded { //nolint:errorlint // the error itself, not wrapped
			t.Errorf("%v after %d calls", err, n)
		}
	})
}

func TestA7_DoHonoursTheDelayOfAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fn, calls := failing(fmt.Errorf("wrapped: %w", retry.After(time.Hour, errFailed)))
		err := retry.Do(t.Context(), retry.Policy{Max: time.Minute}, fn)
		wantCalls(t, calls, 0, time.Hour, 2*time.Hour)
		if !errors.Is(err, errFailed) {
			t.Errorf("error %v", err)
		}

		fn, calls = failing(retry.After(-time.Hour, errFailed))
		_ = retry.Do(t.Context(), retry.Policy{}, fn)
		wantCalls(t, calls, 0, 0, 0)
	})
	if retry.After(time.Second, nil) != nil {
		t.Error("After of a nil error is not nil")
	}
	if _, ok := retry.Delay(errFailed); ok {
		t.Error("a delay from nowhere")
	}
	if d, ok := retry.Delay(retry.After(-1, errFailed)); d != 0 || !ok {
		t.Errorf("a negative delay: %v, %v; want 0", d, ok)
	}
}

func TestA7_DoTellsOfEachFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []retry.Failure
		fn, _ := failing(errFailed)
		_ = retry.Config{OnFailure: func(f retry.Failure) { got = append(got, f) }}.Do(t.Context(), fn)
		want := []retry.Failure{
			{Attempt: 1, Err: errFailed, Delay: 200 * time.Millisecond},
			{Attempt: 2, Err: errFailed, Delay: 400 * time.Millisecond},
			{Attempt: 3, Err: errFailed, Final: true},
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

// TestC2_DoGrowsFromThePreviousDelay: without the delay before, decorrelated
// jitter would stay below three times the base. That it does so by chance in all
// of 49 delays has a probability far below 10⁻¹⁰.
func TestC2_DoGrowsFromThePreviousDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var longest time.Duration
		fn, _ := failing(errFailed)
		_ = retry.Config{
			Policy:    retry.Policy{Attempts: 50, Jitter: retry.Decorrelated},
			OnFailure: func(f retry.Failure) { longest = max(longest, f.Delay) },
		}.Do(t.Context(), fn)
		if longest <= 3*retry.DefaultBase {
			t.Errorf("the longest delay was %v", longest)
		}
	})
}

func TestA7_DoStopsWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(300*time.Millisecond, func() { cancel(errEnded) })
		fn, calls := failing(errFailed)
		start := time.Now()
		err := retry.Do(ctx, retry.Policy{}, fn)
		wantCalls(t, calls, 0, 200*time.Millisecond)
		if !errors.Is(err, errEnded) || !errors.Is(err, errFailed) {
			t.Errorf("error %v, want the cause and the last error", err)
		}
		if waited := time.Since(start); waited != 300*time.Millisecond {
			t.Errorf("returned after %v", waited)
		}

		fn, calls = failing(errFailed)
		if err := retry.Do(ctx, retry.Policy{}, fn); err != errEnded { //nolint:errorlint // the cause itself
			t.Errorf("ended before: %v, want the cause", err)
		}
		wantCalls(t, calls)
	})
}

func TestA7_DoStopsWhenTheContextEndsDuringAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, returned := range []error{errFailed, errEnded} {
			ctx, cancel := context.WithCancelCause(t.Context())
			start, asked := time.Now(), false
			cfg := retry.Config{If: func(error) bool { asked = true; return true }}
			err := cfg.Do(ctx, func(context.Context) error {
				cancel(errEnded)
				return returned
			})
			if !errors.Is(err, errEnded) || !errors.Is(err, returned) || asked || !time.Now().Equal(start) {
				t.Errorf("error %v, asked %v, after %v", err, asked, time.Since(start))
			}
			if strings.Count(err.Error(), errEnded.Error()) != 1 {
				t.Errorf("the cause is not there once: %v", err)
			}
		}
	})
}

// TestA7_DoStartsNoAttemptAfterTheEnd has the context end when the delay is over
// as well, many times, since a select would choose between the two at random.
func TestA7_DoStartsNoAttemptAfterTheEnd(t *testing.T) {
	for range 50 {
		ctx, cancel := context.WithCancelCause(t.Context())
		fn, calls := failing(retry.After(0, errFailed))
		err := retry.Config{OnFailure: func(retry.Failure) { cancel(errEnded) }}.Do(ctx, fn)
		if len(*calls) != 1 || !errors.Is(err, errEnded) || !errors.Is(err, errFailed) {
			t.Fatalf("%d calls, error %v", len(*calls), err)
		}
	}
}

func TestA7_PanicPassesThrough(t *testing.T) {
	calls := 0
	defer func() {
		if got := recover(); got != "boom" || calls != 1 {
			t.Errorf("recovered %v after %d calls", got, calls)
		}
	}()
	_ = retry.Do(t.Context(), retry.Policy{}, func(context.Context) error {
		calls++
		panic("boom")
	})
}

func TestA7_DoRefusesAnInvalidPolicy(t *testing.T) {
	fn, calls := failing(errFailed)
	if err := retry.Do(t.Context(), retry.Policy{Attempts: -1}, fn); !errors.Is(err, retry.ErrPolicy) {
		t.Errorf("error %v, want ErrPolicy", err)
	}
	wantCalls(t, calls)
}

func BenchmarkDoFirstTime(b *testing.B) {
	b.ReportAllocs()
	fn := func(context.Context) error { return nil }
	for b.Loop() {
		_ = retry.Do(b.Context(), retry.Policy{}, fn)
	}
}
