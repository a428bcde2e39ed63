package stint_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// wantReasons checks the reasons for which an arrival at s would wait.
func wantReasons(t *testing.T, s stint.Scheduler, want ...stint.Reason) {
	t.Helper()
	synctest.Wait()
	if got := s.Why(); !sameReasons(got, want) {
		t.Errorf("got  %+v,\nwant %+v", got, want)
	}
}

// sameReasons reports whether two lists of reasons are equal.
func sameReasons(a, b []stint.Reason) bool {
	return slices.EqualFunc(a, b, func(x, y stint.Reason) bool { return reflect.DeepEqual(x, y) })
}

// ahead is a count of entries in one tier.
func ahead(tier stint.Priority, n int) (by [stint.Tiers]int) {
	by[tier-stint.Lowest] = n
	return by
}

func TestWhy_NothingWhenItWouldStart(t *testing.T) {
	s := stint.New(2, stint.Config{PerKey: 1, Queue: 1, Caps: stint.Caps{Low: 1}})
	takeSlots(t, s.Key("a"), 1)
	for _, view := range []stint.Scheduler{s, s.Key("b"), s.At(stint.Highest)} {
		if got := view.Why(); len(got) > 0 {
			t.Errorf("waits for %+v", got)
		}
	}
}

// Why of an arrival and Waiting of an entry that has arrived give the same reasons, except
// for the number of entries ahead.
func TestWhy_EachCodeByItself(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(t *testing.T) stint.Scheduler
		view func(s stint.Scheduler) stint.Scheduler
		want stint.Reason
	}{
		{
			"max",
			func(t *testing.T) stint.Scheduler { t.Helper(); return withTaken(t, stint.New(2, stint.Config{}), 2) },
			func(s stint.Scheduler) stint.Scheduler { return s },
			stint.Reason{Code: stint.CodeMax, Limit: 2, Running: 2},
		},
		{
			"max for a heavy one",
			func(t *testing.T) stint.Scheduler { t.Helper(); return withTaken(t, stint.New(3, stint.Config{}), 1) },
			func(s stint.Scheduler) stint.Scheduler { return s.Weight(3) },
			stint.Reason{Code: stint.CodeMax, Limit: 3, Running: 1, Weight: 3},
		},
		{
			"cap",
			func(t *testing.T) stint.Scheduler {
				t.Helper()
				return withTaken(t, stint.New(9, stint.Config{Caps: stint.Caps{Low: 2}}), 3)
			},
			func(s stint.Scheduler) stint.Scheduler { return s.At(stint.Low) },
			stint.Reason{Code: stint.CodeCap, Limit: 2, Running: 3, Guard: 23},
		},
		{
			"key",
			func(t *testing.T) stint.Scheduler {
				t.Helper()
				s := stint.New(9, stint.Config{PerKey: 2})
				withTaken(t, s.Key("a"), 2)
				return withTaken(t, s, 1)
			},
			func(s stint.Scheduler) stint.Scheduler { return s.Key("a") },
			stint.Reason{Code: stint.CodeKey, Key: "a", Limit: 2, Running: 2},
		},
		{
			"shared",
			func(t *testing.T) stint.Scheduler {
				t.Helper()
				pool := slotstest.NewPool(1)
				withTaken(t, stint.New(1, stint.Config{Slots: pool.Join("backup on host 7")}), 1)
				return stint.New(9, stint.Config{Slots: pool.Join("this one")})
			},
			func(s stint.Scheduler) stint.Scheduler { return s },
			stint.Reason{Code: stint.CodeShared, Limit: 1, Running: 1, By: "backup on host 7"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := c.set(t)
				wantReasons(t, c.view(s), c.want)
				ctx, leave := context.WithCancel(t.Context())
				claimSlot(ctx, c.view(s))
				if got := s.Waiting(); len(got) != 1 || !sameReasons(got[0].Reasons, []stint.Reason{c.want}) {
					t.Errorf("one that has arrived: %+v, want %+v", got, c.want)
				}
				leave()
			})
		})
	}
}

// held takes n slots of s.
func withTaken(t *testing.T, s stint.Scheduler, n int) stint.Scheduler {
	t.Helper()
	takeSlots(t, s, n)
	return s
}

func TestWhy_Paused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		since := time.Now()
		s.Pause("deploy, says Ann")
		time.Sleep(time.Minute)
		s.Pause("a later pause")
		want := stint.Reason{Code: stint.CodePaused, By: "deploy, says Ann", Since: since}
		if got := s.Why(); len(got) != 1 || !got[0].Since.Equal(since) || got[0].By != want.By || got[0].Code != want.Code {
			t.Errorf("got %+v, want %+v", got, want)
		}
		s.Resume()
		wantReasons(t, s)
	})
}

func TestWhy_Closed(t *testing.T) {
	s := stint.New(1, stint.Config{})
	s.Close()
	if got := s.Why(); len(got) != 1 || got[0].Code != stint.CodeClosed {
		t.Errorf("got %+v", got)
	}
}

func TestWhy_Behind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(3, stint.Config{})
		permits := takeSlots(t, s, 2)
		claimSlot(t.Context(), s.Weight(3))
		claimSlot(t.Context(), s)
		claimSlot(t.Context(), s.At(stint.Low))
		// A slot is free, but the heavy head keeps it for itself.
		wantReasons(t, s, stint.Reason{Code: stint.CodeBehind, Ahead: ahead(stint.Normal, 2), Guard: 31})
		both := ahead(stint.Normal, 2)
		both[stint.Low-stint.Lowest] = 1
		wantReasons(t, s.At(stint.Low), stint.Reason{Code: stint.CodeBehind, Ahead: both, Guard: 23})
		wantReasons(t, s.At(stint.Lowest), stint.Reason{Code: stint.CodeBehind, Ahead: both, Guard: 7})
		wantReasons(t, s.At(stint.High))
		w := s.Waiting()
		if len(w) != 3 || w[0].Ahead != 0 || w[1].Ahead != 1 || w[2].Ahead != 2 {
			t.Errorf("waiting: %+v", w)
		}
		s.Clear()
		synctest.Wait()
		permits.release()
		wantAllFree(t, s)
	})
}

func TestWhy_QueueFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permit := full(t, 2, stint.Block)
		got := s.Why()
		want := stint.Reason{Code: stint.CodeQueueFull, Limit: 2, Running: 2}
		if len(got) != 3 || !sameReasons(got[:1], []stint.Reason{want}) ||
			got[1].Code != stint.CodeMax || got[2].Code != stint.CodeBehind {
			t.Errorf("got %+v, want first %+v, then max and behind", got, want)
		}
		s.Clear()
		permit.Release()
		wantAllFree(t, s)
	})
}

// Submitters that wait for room come behind what is queued, with what would keep
// their jobs from starting if there were room.
func TestWhy_WaitingForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permit := full(t, 2, stint.Block)
		since := time.Now()
		ctx, leave := context.WithCancel(t.Context())
		submit := func(s stint.Scheduler) {
			go func() { _, _ = stint.Go(ctx, s, nothing).Wait(ctx) }()
			synctest.Wait()
			time.Sleep(time.Second)
		}
		submit(s.Key("a"))
		submit(s.At(stint.High))
		w := s.Waiting()
		if len(w) != 4 || s.Stats().Blocked != 2 {
			t.Fatalf("%d wait and %d for room, want 4 and 2", len(w), s.Stats().Blocked)
		}
		isFull := stint.Reason{Code: stint.CodeQueueFull, Limit: 2, Running: 2}
		isMax := stint.Reason{Code: stint.CodeMax, Limit: 1, Running: 1}
		behind := stint.Reason{Code: stint.CodeBehind, Ahead: ahead(stint.Normal, 2), Guard: 31}
		behind.Ahead[stint.High-stint.Lowest] = 1 // waits for room, and is let in first
		if got := w[2]; got.Key != "a" || got.Priority != stint.Normal || got.Weight != 1 ||
			got.Since.Sub(since) > time.Microsecond || got.Ahead != 3 ||
			!sameReasons(got.Reasons, []stint.Reason{isFull, isMax, behind}) {
			t.Errorf("the first: %+v", got)
		}
		if got := w[3]; got.Key != "" || got.Priority != stint.High || !got.Since.Equal(since.Add(time.Second)) ||
			got.Ahead != 0 || !sameReasons(got.Reasons, []stint.Reason{isFull, isMax}) {
			t.Errorf("the second: %+v", got)
		}
		leave()
		synctest.Wait()
		s.Clear()
		permit.Release()
		wantAllFree(t, s)
	})
}

// Jobs that are posted without the scheduler's lock are shown like the others, however
// many, in their order.
func TestWhy_WaitingOfManyPosted(t *testing.T) {
	const n = 5000
	s := stint.New(1, stint.Config{})
	permit := mustTry(t, s)
	for i := range n {
		view := s.At(stint.Low + stint.Priority(i%3))
		_ = stint.Go(t.Context(), view, nothing)
	}
	w := s.Waiting()
	if len(w) != n {
		t.Fatalf("%d wait, want %d", len(w), n)
	}
	seen := map[stint.Priority]int{}
	for i, w := range w {
		if above := seen[w.Priority]; w.Ahead < above {
			t.Fatalf("place %d of tier %v has %d ahead, want %d at least", i, w.Priority, w.Ahead, above)
		}
		seen[w.Priority]++
	}
	if seen[stint.Low] != (n+2)/3 || seen[stint.Normal] != (n+1)/3 || seen[stint.High] != n/3 {
		t.Errorf("by tier %v wait", seen)
	}
	s.Clear()
	permit.Release()
}

// Several reasons come with the binding one first: what would have to end
// before any of the others mattered.
func TestWhy_BindingReasonFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := slotstest.NewPool(2)
		s := stint.New(2, stint.Config{PerKey: 1, Caps: stint.Caps{Low: 1}, Slots: pool.Join("a")})
		a := s.Key("a").At(stint.Low)
		takeSlots(t, s.Key("a"), 1)
		takeSlots(t, s, 1)
		ctx, leave := context.WithCancel(t.Context())
		claimSlot(ctx, a)
		s.Pause("the test")
		codes := func(reasons []stint.Reason) (codes []stint.Code) {
			for _, r := range reasons {
				codes = append(codes, r.Code)
			}
			return codes
		}
		want := []stint.Code{
			stint.CodePaused, stint.CodeKey, stint.CodeMax, stint.CodeCap, stint.CodeBehind, stint.CodeShared,
		}
		if got := codes(a.Why()); !slices.Equal(got, want) {
			t.Errorf("an arrival waits for %v, want %v", got, want)
		}
		want = slices.DeleteFunc(want, func(c stint.Code) bool { return c == stint.CodeBehind })
		if got := codes(s.Waiting()[0].Reasons); !slices.Equal(got, want) {
			t.Errorf("the first entry waits for %v, want %v", got, want)
		}
		leave()
	})
}

func TestWhy_Waiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		ctx, leave := context.WithCancel(t.Context())
		first := time.Now()
		claimSlot(ctx, s.At(stint.Low).Key("a").Weight(1))
		time.Sleep(time.Minute)
		f := stint.Go(ctx, s.At(stint.High).Key("b"), nothing)
		w := s.Waiting()
		if len(w) != 2 {
			t.Fatalf("%d wait, want 2", len(w))
		}
		if got := w[0]; got.Priority != stint.Low || got.Key != "a" || got.Weight != 1 || !got.Since.Equal(first) ||
			got.Ahead != 1 || got.Estimate != nil {
			t.Errorf("the first: %+v", got)
		}
		if got := w[1]; got.Priority != stint.High || got.Key != "b" || got.Since.Before(first) || got.Ahead != 0 {
			t.Errorf("the second: %+v", got)
		}
		if got, waits := f.Why(); !waits || got.Key != "b" || got.Reasons[0].Code != stint.CodeMax {
			t.Errorf("the future: %+v, %t", got, waits)
		}
		permit.Release()
		_, _ = f.Wait(t.Context())
		if got, waits := f.Why(); waits {
			t.Errorf("a future that is over: %+v", got)
		}
		leave()
	})
}

// The estimate comes from the rate at which entries have started lately, however
// they arrived, and after a time of rest as well.
func TestWhy_EstimateAndItsBasis(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(2, stint.Config{})
				time.Sleep(time.Hour)
				for range 60 {
					go func() {
						_ = f.do(t.Context(), s, func(context.Context) error {
							time.Sleep(time.Second)
							return nil
						})
					}()
					synctest.Wait()
				}
				time.Sleep(20*time.Second + time.Second/2)
				last := stint.Go(t.Context(), s, nothing)
				w, _ := last.Why()
				if w.Estimate == nil {
					t.Fatal("there is no estimate")
				}
				if w.Ahead != 18 || w.Estimate.Ahead != 18 {
					t.Errorf("%d are ahead, want 18", w.Ahead)
				}
				if rate := w.Estimate.Rate; rate < 1.8 || rate > 2.2 {
					t.Errorf("the rate is %.2f a second, want about 2", rate)
				}
				if wait := w.Estimate.Wait; wait < 8*time.Second || wait > 11*time.Second {
					t.Errorf("the estimate is %v, want about 9 s", wait)
				}
				_, _ = last.Wait(t.Context())
			})
		})
	}
}

// A tier at its cap waits for that although the limit is reached, too: the limit has
// to have room first. The guard starts an entry past its cap, but not past the limit.
func TestWhy_CapWhileTheLimitHolds(t *testing.T) {
	s := stint.New(2, stint.Config{Caps: stint.Caps{Low: 1}})
	permits := takeSlots(t, s, 2)
	limit := stint.Reason{Code: stint.CodeMax, Limit: 2, Running: 2}
	atCap := stint.Reason{Code: stint.CodeCap, Limit: 1, Running: 2, Guard: 23}
	if got, want := s.At(stint.Low).Why(), []stint.Reason{limit, atCap}; !sameReasons(got, want) {
		t.Errorf("got  %+v,\nwant %+v", got, want)
	}
	if got, want := s.Why(), []stint.Reason{limit}; !sameReasons(got, want) {
		t.Errorf("a tier without a cap: got %+v, want %+v", got, want)
	}
	permits[0].Release()
	atCap.Running = 1
	if got, want := s.At(stint.Low).Why(), []stint.Reason{atCap}; !sameReasons(got, want) {
		t.Errorf("a slot is free: got %+v, want %+v", got, want)
	}
}

// Without a basis, or when nothing will start, there is none.
func TestWhy_NoEstimateWithoutBasis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		time.Sleep(time.Hour)
		first := stint.Go(t.Context(), s, nothing)
		if w, _ := first.Why(); w.Estimate != nil {
			t.Errorf("nothing has started yet: %+v", w.Estimate)
		}
		permit.Release()
		_, _ = first.Wait(t.Context())
		time.Sleep(time.Minute)
		s.Pause("the test")
		second := stint.Go(t.Context(), s, nothing)
		if w, _ := second.Why(); w.Estimate != nil {
			t.Errorf("paused: %+v", w.Estimate)
		}
		s.Resume()
		_, _ = second.Wait(t.Context())
	})
}

func TestWhy_JSON(t *testing.T) {
	text, err := json.Marshal([]stint.Reason{
		{Code: stint.CodeMax, Limit: 4, Running: 4},
		{Code: stint.CodeMax, Limit: 4, Running: 1, Weight: 4},
		{Code: stint.CodeBehind, Ahead: ahead(stint.High, 2), Guard: 3},
		{Code: stint.CodePaused, By: "Ann", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	})
	want := `[{"code":"max","limit":4,"running":4},{"code":"max","limit":4,"running":1,"weight":4},` +
		`{"code":"behind","ahead":[0,0,0,0,2,0,0],"guard":3},` +
		`{"code":"paused","since":"2026-01-02T03:04:05Z","by":"Ann"}]`
	if string(text) != want || err != nil {
		t.Errorf("got  %s, %v,\nwant %s", text, err, want)
	}
}

// Arrivals that come slowly are dated exactly, also when the queue is never empty, and the order
// of those that come at once can be derived from the times.
func TestB6_TimesOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		var times []time.Time
		for i := range 100 {
			if i%10 > 0 {
				time.Sleep(time.Minute)
			}
			times = append(times, time.Now())
			stint.Go(t.Context(), s, nothing)
		}
		all := s.Waiting()
		for i, w := range all {
			if early := times[i].Sub(w.Since); early.Abs() > time.Microsecond {
				t.Errorf("arrival %d is dated %v early", i, early)
			}
			if i > 0 && !all[i-1].Since.Before(w.Since) {
				t.Errorf("arrivals %d and %d are not in order", i-1, i)
			}
		}
		s.Clear()
		releaseSlot(permit)
		wantAllFree(t, s)
	})
}

// The first two entries of a scheduler are in the order of their arrival, though its clock has
// not moved.
func TestB6_FirstEntriesAreInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		p, err := s.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first := stint.Go(t.Context(), s.Key("k"), value(1))
		second := stint.Go(t.Context(), s.Key("k"), value(2))
		for i, f := range []*stint.Future[int]{first, second} {
			if w, waits := f.Why(); !waits || w.Ahead != i || time.Since(w.Since).Abs() > time.Microsecond {
				t.Errorf("entry %d has %d ahead, since %s; want %d, since %s", i, w.Ahead, w.Since, i, time.Now())
			}
		}
		p.Release()
		wantAllFree(t, s)
	})
}
