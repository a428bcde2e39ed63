package limiter

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/bench/measure"
)

// The readings of a pace, which have goals.
const (
	rateError = "error of the rate"
	slowest   = "slowest half second"
	fastest   = "fastest half second"
)

// windows of half a second are measured; the one before them is not, because
// the full bucket with which each limiter starts falls into it.
const windows = 4

func paceReadings() []measure.Reading {
	return []measure.Reading{{Name: rateError, Unit: "%"}, {Name: slowest, Unit: "%"}, {Name: fastest, Unit: "%"}}
}

func paceGoals() []string {
	return []string{rateError + " ≤ 0.5 %", slowest + " ≥ 99 %", fastest + " ≤ 101 %"}
}

// pace counts the tokens that are admitted in each window.
type pace struct {
	start  time.Time
	window time.Duration
	counts [1 + windows + 1]atomic.Int64 // the last one takes what comes too late
}

func (p *pace) add(n int) {
	w := int(measure.Since(p.start) / p.window)
	p.counts[min(w, len(p.counts)-1)].Add(int64(n))
}

// run lets workers go until the last window has closed, and compares the pace
// with perSecond. A worker ends when its context does.
func (p *pace) run(workers int, perSecond float64, work func(ctx context.Context)) measure.Values {
	p.start = measure.Now()
	ctx, cancel := context.WithTimeout(context.Background(), (1+windows)*p.window)
	defer cancel()
	var all sync.WaitGroup
	for range workers {
		all.Go(func() { work(ctx) })
	}
	all.Wait()
	return p.values(perSecond * p.window.Seconds())
}

// values are percentages of the tokens that one window should admit.
func (p *pace) values(meant float64) measure.Values {
	least, most, sum := math.Inf(1), 0.0, 0.0
	for i := range windows {
		percent := 100 * float64(p.counts[1+i].Load()) / meant
		least, most, sum = min(least, percent), max(most, percent), sum+percent
	}
	return measure.Values{
		rateError: math.Abs(sum/windows - 100),
		slowest:   least,
		fastest:   most,
	}
}
