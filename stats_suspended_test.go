package stint_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

// A function counts as suspended from when it waits for other work until it has its slots again.
func TestB6_SuspendedFunctionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		awaited := stint.NewPromise[int]()
		wait := func(ctx context.Context) (int, error) { return awaited.Future().Wait(ctx) }
		wantSuspended(t, s, 0)
		for range 2 {
			stint.Go(t.Context(), s, wait)
		}
		wantSuspended(t, s, 2)
		wantCounts(t, s, 0, 0)
		permit := mustTry(t, s)
		awaited.Resolve(1)
		wantSuspended(t, s, 2) // they wait to resume
		wantCounts(t, s, 1, 0)
		permit.Release()
		wantSuspended(t, s, 0)
		text, err := json.Marshal(s.Stats())
		if err != nil || strings.Contains(string(text), "suspended") {
			t.Errorf("with none the JSON is %s, %v", text, err)
		}
		wantAllFree(t, s)
	})
}

// wantSuspended checks how many functions have suspended their slots.
func wantSuspended(t *testing.T, s stint.Scheduler, want int) {
	t.Helper()
	synctest.Wait()
	if got := s.Stats().Suspended; got != want {
		t.Fatalf("%d functions are suspended, want %d", got, want)
	}
}

// Why and Waiting say how many functions resume before what waits.
func TestB6_FunctionsThatResumeGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{PerKey: 1})
		awaited := stint.NewPromise[int]()
		for _, key := range []string{"", "a", "a", "b"} {
			stint.Go(t.Context(), s.Key(key), func(ctx context.Context) (int, error) { return awaited.Future().Wait(ctx) })
			synctest.Wait()
		}
		permit := mustTry(t, s.Key("b"))
		awaited.Resolve(1)
		synctest.Wait()
		full := stint.Reason{Code: stint.CodeMax, Limit: 1, Running: 1}
		behind := stint.Reason{Code: stint.CodeBehind, Resuming: 3, Guard: wantsGuard(t, s)} // that of b waits for its key
		wantReasons(t, s, full, behind)
		f := stint.Go(t.Context(), s, value(1))
		synctest.Wait()
		w, waits := f.Why()
		if !waits || !sameReasons(w.Reasons, []stint.Reason{full, behind}) {
			t.Errorf("Why: %v, %+v", waits, w.Reasons)
		}
		if all := s.Waiting(); len(all) != 1 || !sameReasons(all[0].Reasons, w.Reasons) {
			t.Errorf("Waiting: %+v", all)
		}
		permit.Release()
		if _, err := f.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		wantAllFree(t, s)
	})
}

// wantsGuard returns the turns until the guard's, which another test checks.
func wantsGuard(t *testing.T, s stint.Scheduler) int {
	t.Helper()
	why := s.Why()
	if len(why) != 2 {
		t.Fatalf("the reasons are %+v, want two", why)
	}
	return why[1].Guard
}

func TestB6_WhatResumesInASentence(t *testing.T) {
	ahead := [stint.Tiers]int{3: 5}
	for want, r := range map[string]stint.Reason{
		"a function that resumes its slots goes first":                                           {Resuming: 1},
		"2 functions that resume their slots go first":                                           {Resuming: 2},
		"other entries go first: 5 of tier normal":                                               {Ahead: ahead},
		"an entry that needs several slots goes first":                                           {Guard: 3},
		"2 functions that resume their slots go first, and then other entries: 5 of tier normal": {Resuming: 2, Ahead: ahead},
	} {
		r.Code = stint.CodeBehind
		if got := r.String(); got != want {
			t.Errorf("%+v reads\n%q, want\n%q", r, got, want)
		}
	}
}
