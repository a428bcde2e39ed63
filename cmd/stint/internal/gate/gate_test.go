package gate_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/gate"
)

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, begin := gate.New(3*time.Second), time.Now()
		for i := range 4 {
			if err := g.Wait(t.Context(), stint.Normal); err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(begin), time.Duration(i)*3*time.Second; got != want {
				t.Errorf("start %d after %v, want %v", i, got, want)
			}
			g.Started()
		}
	})
}

func TestDelay_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(time.Hour)
		if err := g.Wait(t.Context(), stint.Normal); err != nil {
			t.Fatal(err)
		}
		g.Started()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results := make(chan error)
		for range 2 { // one waits for the time, the other for its turn
			go func() { results <- g.Wait(ctx, stint.Normal) }()
		}
		for range 2 {
			if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Wait = %v", err)
			}
		}
	})
}

// Of jobs that wait for their turn, those of higher tiers go first.
func TestWait_HigherTiersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(time.Second)
		if err := g.Wait(t.Context(), stint.Normal); err != nil {
			t.Fatal(err)
		}
		passed := make(chan string, 4)
		pass := func(name string, tier stint.Priority) {
			go func() {
				if err := g.Wait(t.Context(), tier); err != nil {
					t.Error(err)
				}
				passed <- name
				g.Started()
			}()
			synctest.Wait()
		}
		pass("low 1", stint.Low)
		pass("low 2", stint.Low)
		pass("normal", stint.Normal)
		pass("high", stint.High)
		g.Started()
		for _, want := range []string{"high", "normal", "low 1", "low 2"} {
			if got := <-passed; got != want {
				t.Errorf("%s passes, want %s", got, want)
			}
		}
	})
}

func TestLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var load, young atomic.Int64
		load.Store(5)
		g := gate.New(0, gate.Load(2,
			func() (float64, error) { return float64(load.Load()), nil },
			func() int { return int(young.Load()) }))
		passed := make(chan error, 1)
		go func() { passed <- g.Wait(t.Context(), stint.Normal) }()
		for _, change := range []func(){
			func() { load.Store(2) },
			func() { young.Store(1); load.Store(1) }, // one job that the average does not include yet
			func() { young.Store(0) },
		} {
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(passed) > 0 {
				t.Fatalf("passed at load %d with %d young", load.Load(), young.Load())
			}
			change()
		}
		if err := <-passed; err != nil {
			t.Error(err)
		}
	})
}

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Int64
		free.Store(99)
		broken := errors.New("broken")
		g := gate.New(0, gate.Memory(100, func() (int64, error) {
			if n := free.Load(); n > 0 {
				return n, nil
			}
			return 0, broken
		}))
		passed := make(chan error, 1)
		go func() { passed <- g.Wait(t.Context(), stint.Normal) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(passed) > 0 {
			t.Fatal("passed with too little memory")
		}
		free.Store(100)
		if err := <-passed; err != nil {
			t.Error(err)
		}
		g.Started()
		free.Store(0)
		if err := g.Wait(t.Context(), stint.Normal); !errors.Is(err, broken) {
			t.Errorf("Wait = %v, want the reader's error", err)
		}
	})
}

// Jobs take their memory after their start. With a delay that is long enough, no job
// starts beside one that has taken all of it.
func TestGates_MemoryAfterDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken atomic.Int64
		g := gate.New(2*time.Second, gate.Memory(1, func() (int64, error) { return 1 - taken.Load(), nil }))
		for range 4 {
			go func() {
				if err := g.Wait(t.Context(), stint.Normal); err != nil {
					t.Error(err)
				}
				g.Started()
				time.Sleep(time.Second)
				if taken.Add(1) > 1 {
					t.Error("a job started while no memory was available")
				}
				time.Sleep(time.Minute)
				taken.Add(-1)
			}()
		}
		time.Sleep(time.Hour)
	})
}

// Jobs that have waited for a closed gate keep the delay between their starts.
func TestGates_DelayAfterClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		opens := begin.Add(time.Minute)
		g := gate.New(3*time.Second, func() (bool, error) { return !time.Now().Before(opens), nil })
		starts := make(chan time.Duration, 4)
		for range cap(starts) {
			go func() {
				if err := g.Wait(t.Context(), stint.Normal); err != nil {
					t.Error(err)
				}
				starts <- time.Since(begin)
				g.Started()
			}()
		}
		for i := range cap(starts) {
			if got, want := <-starts, time.Minute+time.Duration(i)*3*time.Second; got != want {
				t.Errorf("start %d after %v, want %v", i, got, want)
			}
		}
	})
}

// The next job passes when the one before has been started, and not earlier.
func TestGates_WaitForStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(0, func() (bool, error) { return true, nil })
		if err := g.Wait(t.Context(), stint.Normal); err != nil {
			t.Fatal(err)
		}
		passed := make(chan error, 1)
		go func() { passed <- g.Wait(t.Context(), stint.Normal) }()
		synctest.Wait()
		if len(passed) > 0 {
			t.Fatal("passed before the start of the job before")
		}
		g.Started()
		if err := <-passed; err != nil {
			t.Error(err)
		}
	})
}

func TestReaders(t *testing.T) {
	if load, err := gate.ReadLoad(); err != nil || load < 0 {
		t.Errorf("ReadLoad = %v, %v", load, err)
	}
	if free, err := gate.ReadMemory(); err != nil || free < 1<<20 {
		t.Errorf("ReadMemory = %v, %v", free, err)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "1k": 1024, "1K": 1024, "1KiB": 1024, "1kb": 1000, "1.5G": 3 << 29, "2T": 2 << 40,
		"500M": 500 << 20, "7b": 7, ".5k": 512, "1e3": 1000,
	} {
		if got, err := gate.ParseSize(text); err != nil || got != want {
			t.Errorf("%q = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "K", "-1", "1X", "1KK", "1iB", "nan", "inf", "9e30", "1 G", "8388608T"} {
		if got, err := gate.ParseSize(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func FuzzParseSize(f *testing.F) {
	for _, seed := range []string{"1", "1.5G", "1KiB", "kb", "", "-1T", "0x1p3M"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if size, err := gate.ParseSize(text); err == nil && (size < 0 || size > math.MaxInt64-1) {
			t.Errorf("%q = %d", text, size)
		}
	})
}
