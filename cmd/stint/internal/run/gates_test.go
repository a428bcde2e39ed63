package run_test

import (
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/gate"
	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/retry"
)

// A gate looks at the machine for one job at a time, when the job before has been started.
func TestGates_AfterStart(t *testing.T) {
	var words []string
	for n := range 64 {
		words = append(words, strconv.Itoa(n))
	}
	var looks, starts atomic.Int64
	cfg := config(t, "true", words...)
	cfg.Retry, cfg.KillAfter, cfg.Trace = retry.Policy{Attempts: 1}, time.Second, true
	cfg.Gates = []gate.Check{func() (bool, error) {
		if looks, starts := looks.Add(1)-1, starts.Load(); looks != starts {
			t.Errorf("look %d after %d starts", looks+1, starts)
		}
		return true, nil
	}}
	cfg.Say = func(string) {
		for range 100 {
			runtime.Gosched() // to jobs that have passed too early
		}
		starts.Add(1)
	}
	o := run.Do(&cfg)
	if o.Err != nil || o.Failed > 0 || int(looks.Load()) != len(words) {
		t.Errorf("%+v after %d looks", o, looks.Load())
	}
}
