package stint_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// guess is an estimate, and how long the wait was from then on.
type guess struct {
	tier    stint.Priority
	asked   time.Time
	wait    time.Duration
	none    bool // there was no estimate
	started bool
	was     time.Duration
}

// office is a scheduler under the load of functions that take a second, in the mean if random.
type office struct {
	t       *testing.T
	s       stint.Scheduler
	holders bool // the scheduler knows what has its slots
	rnd     *rand.Rand
	how     form // Go, if it has no name
	random  bool
	deaf    bool // it does not ask for estimates
	guesses []*guess
}

// submit has a function run, and asks for its estimate if it has to wait.
func (o *office) submit(tier stint.Priority) {
	takes := time.Second
	if o.random {
		takes = time.Duration(o.rnd.ExpFloat64() * float64(time.Second))
	}
	g := &guess{tier: tier, asked: time.Now()}
	fn := func(context.Context) error {
		g.started, g.was = true, time.Since(g.asked)
		time.Sleep(takes)
		return nil
	}
	var f *stint.Future[int]
	if o.how.do != nil {
		go func() { _ = o.how.do(o.t.Context(), o.s.At(tier), fn) }()
	} else {
		f = stint.Go(o.t.Context(), o.s.At(tier), valued(fn))
	}
	synctest.Wait()
	if o.deaf || g.started {
		return
	}
	var w stint.Waiting
	if f != nil {
		w, _ = f.Why()
	} else {
		all := o.s.Waiting()
		slices.Reverse(all)
		w = all[slices.IndexFunc(all, func(w stint.Waiting) bool { return w.Priority == tier })]
	}
	o.guesses = append(o.guesses, g)
	if g.none = w.Estimate == nil; !g.none {
		g.wait = w.Estimate.Wait
	}
}

// load submits n functions of random tiers, of which the slots are in use for a part of the time.
func (o *office) load(n int, part float64, tiers ...stint.Priority) {
	every := float64(time.Second) / (part * float64(o.s.Stats().Limit))
	for range n {
		time.Sleep(time.Duration(o.rnd.ExpFloat64() * every))
		o.submit(tiers[o.rnd.IntN(len(tiers))])
	}
}

// forget forgets the estimates so far.
func (o *office) forget() { o.guesses = nil }

// only forgets the estimates of other tiers.
func (o *office) only(tier stint.Priority) {
	o.guesses = slices.DeleteFunc(o.guesses, func(g *guess) bool { return g.tier != tier })
}

var allTiers = []stint.Priority{
	stint.Lowest, stint.Lower, stint.Low, stint.Normal, stint.High, stint.Higher, stint.Highest,
}

func plainly() stint.Config { return stint.Config{} }

// estimated are loads, of which the estimates are compared with the waits.
var estimated = []struct {
	name string
	few  bool // few are ahead, so that it matters when what runs has begun
	cfg  func() stint.Config
	run  func(o *office)
}{
	{"one tier, 110 %", false, plainly, func(o *office) { o.load(1000, 1.1, stint.Normal) }},
	{"one tier, 95 %", false, plainly, func(o *office) { o.load(2000, 0.95, stint.Normal) }},
	{"one tier, 80 %", true, plainly, func(o *office) { o.load(2000, 0.8, stint.Normal) }},
	{"seven tiers, 80 %", true, plainly, func(o *office) { o.load(4000, 0.8, allTiers...) }},
	{"seven tiers, 95 %", true, plainly, func(o *office) { o.load(4000, 0.95, allTiers...) }},
	{"seven tiers, 110 %", true, plainly, func(o *office) {
		o.load(2000, 1.1, allTiers...)
		o.deaf = true
		o.load(5000, 1.1, allTiers...)
	}},
	{"two slots are held", false, plainly, func(o *office) {
		end := make(chan struct{})
		for range 2 {
			go func() {
				_, _ = stint.Run(o.t.Context(), o.s, func(context.Context) (int, error) { <-end; return 0, nil })
			}()
		}
		synctest.Wait()
		o.load(1000, 0.55, stint.Normal)
		o.s.Clear()
		close(end)
	}},
	{"two functions do not end", false, plainly, func(o *office) {
		end := make(chan struct{})
		for range 2 {
			stint.Go(o.t.Context(), o.s, func(context.Context) (int, error) { <-end; return 0, nil })
		}
		synctest.Wait()
		o.load(1000, 0.5, stint.Normal)
		o.s.Clear()
		close(end)
	}},
	{"two of the slots are shared", false, func() stint.Config {
		return stint.Config{Slots: slotstest.NewPool(2).Join("a")}
	}, func(o *office) { o.load(1000, 0.5, stint.Normal) }},
	{"low over its cap", false, func() stint.Config {
		return stint.Config{Caps: stint.Caps{Low: 2, Normal: 4}}
	}, func(o *office) {
		for range 100 {
			o.submit(stint.Low)
		}
		for range 240 {
			o.load(5, 0.6, stint.Normal)
			o.submit(stint.Low)
		}
		o.only(stint.Low)
		o.deaf = true
		o.load(1000, 0.6, stint.Normal)
	}},
	{"after an hour's rest", false, plainly, func(o *office) {
		o.load(200, 0.95, stint.Normal)
		time.Sleep(time.Hour)
		o.forget()
		for range 20 {
			o.submit(stint.Normal)
		}
		o.load(60, 0.95, stint.Normal)
	}},
	{"after an hour's pause", false, plainly, func(o *office) {
		o.load(200, 0.95, stint.Normal)
		o.s.Pause("the test")
		for range 40 {
			o.submit(stint.Normal)
		}
		time.Sleep(time.Hour)
		o.s.Resume()
		o.forget()
		o.load(200, 0.95, stint.Normal)
	}},
	{"after Resize from 4 to 40", false, plainly, func(o *office) {
		o.load(400, 2, stint.Normal)
		o.s.Resize(40)
		o.forget()
		o.load(400, 1, stint.Normal)
	}},
	{"after Resize from 4 to 2", false, plainly, func(o *office) {
		o.load(400, 1, stint.Normal)
		o.s.Resize(2)
		o.forget()
		o.load(100, 0.9, stint.Normal)
	}},
	{"behind a sudden backlog", false, plainly, func(o *office) {
		o.load(400, 0.95, stint.Low, stint.Normal)
		o.only(stint.High)
		for range 10 {
			o.deaf = true
			for range 50 {
				o.submit(stint.High)
			}
			o.deaf = false
			o.load(20, 0.95, stint.Low, stint.Normal)
			time.Sleep(30 * time.Second)
		}
	}},
}

// outcome is how far estimates were from the waits.
type outcome struct {
	n, none int
	median  float64 // of the relative errors
	mean    float64 // the sum of the estimates over that of the waits
	tiers   string  // the medians by tier, lowest first, in percent
}

func (o *office) outcome() (all outcome) {
	var errs []float64
	by := make(map[stint.Priority][]float64)
	var wait, was float64
	for _, g := range o.guesses {
		switch {
		case g.none:
			all.none++
		case g.wait < 0:
			o.t.Errorf("an estimate is %v", g.wait)
		case g.started && g.was > 0:
			err := math.Abs(g.wait.Seconds()/g.was.Seconds() - 1)
			errs, by[g.tier] = append(errs, err), append(by[g.tier], err)
			wait, was = wait+g.wait.Seconds(), was+g.was.Seconds()
		}
	}
	median := func(errs []float64) float64 {
		slices.Sort(errs)
		return errs[len(errs)/2]
	}
	all.n, all.median, all.mean = len(errs), median(errs), wait/was
	for _, tier := range allTiers {
		if len(by[tier]) > 0 && len(by) > 1 {
			all.tiers += fmt.Sprintf(" %.0f", 100*median(by[tier]))
		}
	}
	return all
}

// Estimates are near the waits whatever the load, the tiers and the caps, and after a rest, a
// pause and a change of the limit. Where few are ahead, that needs the times at which what runs has
// begun, which are known of what Go has started, and with Config.Holders of all. If the
// functions take random times, a single wait cannot be predicted, but the sum of the waits can.
func TestB6_EstimatesAreNearTheWaits(t *testing.T) {
	const seed = 1
	table := []string{fmt.Sprintf("%-28s %8s %8s %8s %18s   tiers with Go",
		"median error", "Go", "Acquire", "Holders", "random: sum, error")}
	for _, c := range estimated {
		columns := make([]outcome, 4)
		for i, o := range []office{{}, {how: forms[0]}, {how: forms[0], holders: true}, {random: true}} {
			synctest.Test(t, func(t *testing.T) {
				cfg := c.cfg()
				cfg.Holders = o.holders
				o.t, o.s, o.rnd = t, stint.New(4, cfg), rand.New(rand.NewPCG(seed, uint64(i)))
				c.run(&o)
				o.s.Clear()
				time.Sleep(time.Minute)
				synctest.Wait()
				if s := o.s.Stats(); s.Running+s.Queued > 0 {
					t.Errorf("%d run and %d wait", s.Running, s.Queued)
				}
				columns[i] = o.outcome()
			})
		}
		exact, some, known, random := columns[0], columns[1], columns[2], columns[3]
		table = append(table, fmt.Sprintf("%-28s %6.0f %% %6.0f %% %6.0f %%        %4.2f, %5.0f %%  %s", c.name,
			100*exact.median, 100*some.median, 100*known.median, random.mean, 100*random.median, exact.tiers))
		if exact.median > 0.25 || known.median > 0.25 || some.median > 0.25 && !c.few {
			t.Errorf("%s: the median errors are %.2f with Go, %.2f with Acquire, %.2f with Holders", c.name,
				exact.median, some.median, known.median)
		}
		if exact.n < 40 || exact.none > exact.n/2 {
			t.Errorf("%s: %d waits have an estimate and %d have none", c.name, exact.n, exact.none)
		}
	}
	t.Log("\n" + strings.Join(table, "\n"))
}

// A wait behind functions that run is what they have left to run. If one runs for much longer
// than others did, the estimate grows with time, and is never negative.
func TestB6_EstimateBehindALongFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		lasts := func(d time.Duration) *stint.Future[int] {
			return stint.Go(t.Context(), s, func(context.Context) (int, error) { time.Sleep(d); return 0, nil })
		}
		for range 10 {
			lasts(time.Second)
		}
		time.Sleep(time.Minute)
		lasts(time.Hour)
		first, second := lasts(time.Second), lasts(time.Second)
		for _, c := range []struct{ after, least, most time.Duration }{
			{0, time.Second, time.Second},
			{time.Second / 4, 3 * time.Second / 4, 3 * time.Second / 4},
			{time.Second, 0, time.Second},
			{time.Minute, 0, 10 * time.Second},
			{time.Minute, 10 * time.Second, time.Minute},
		} {
			time.Sleep(c.after)
			w, _ := first.Why()
			if w.Estimate == nil || w.Estimate.Wait < c.least-time.Millisecond || w.Estimate.Wait > c.most+time.Millisecond {
				t.Errorf("%v later the estimate is %+v, want one from %v to %v", c.after, w.Estimate, c.least, c.most)
			}
			if behind, _ := second.Why(); behind.Estimate == nil || behind.Estimate.Wait <= w.Estimate.Wait {
				t.Errorf("%v later the estimate of the next is %+v, after %+v", c.after, behind.Estimate, w.Estimate)
			}
		}
		s.Clear()
		time.Sleep(time.Hour)
		wantAllFree(t, s)
	})
}

// An estimate of more than 292 years, which a time.Duration cannot hold, is a very long one.
func TestB6_EstimateOfCenturies(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		lasts := func(d time.Duration) *stint.Future[int] {
			return stint.Go(t.Context(), s, func(context.Context) (int, error) { time.Sleep(d); return 0, nil })
		}
		_, _ = lasts(century).Wait(t.Context())
		var last *stint.Future[int]
		for range 6 {
			last = lasts(time.Second)
		}
		if w, _ := last.Why(); w.Estimate == nil || w.Estimate.Wait < century {
			t.Errorf("five are ahead that last for a century each, and the estimate is %+v", w.Estimate)
		}
		time.Sleep(time.Minute)
		wantAllFree(t, s)
	})
}

// Starts in which no time has passed say nothing about how often slots come free: a slot that is
// held for an unknown time is expected to be held for half of the time that functions take.
func TestB6_EstimateAfterManyStartsAtOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		second := func(context.Context) (int, error) { time.Sleep(time.Second); return 0, nil }
		_, _ = stint.Go(t.Context(), s, second).Wait(t.Context())
		acquire := func() *stint.Permit {
			permit, err := s.Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			return &permit
		}
		held := acquire()
		for range 10 {
			go func() { acquire().Release() }()
		}
		synctest.Wait()
		held.Release()
		synctest.Wait()
		held = acquire()
		w, _ := stint.Go(t.Context(), s, second).Why()
		if w.Estimate == nil || (w.Estimate.Wait-time.Second/2).Abs() > time.Millisecond {
			t.Errorf("the estimate is %+v, want half a second", w.Estimate)
		}
		held.Release()
		time.Sleep(time.Minute)
		wantAllFree(t, s)
	})
}

// However much of a higher tier waits and arrives, an estimate is not longer than the time until
// the guard starts the entry.
func TestB6_EstimateIsBoundedByTheGuard(t *testing.T) {
	second := func(context.Context) (int, error) { time.Sleep(time.Second); return 0, nil }
	for _, waiting := range []int{20, 50, 200} {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(1, stint.Config{})
			arrive := func(n int) {
				for range n {
					stint.Go(t.Context(), s.At(stint.High), second)
					time.Sleep(time.Second)
				}
			}
			for range waiting {
				stint.Go(t.Context(), s.At(stint.High), second)
			}
			time.Sleep(time.Second / 2)
			arrive(60)
			asked := time.Now()
			low := stint.Go(t.Context(), s.At(stint.Low), func(context.Context) (time.Duration, error) {
				return time.Since(asked), nil
			})
			w, _ := low.Why()
			arrive(waiting)
			was, err := low.Wait(t.Context())
			if err != nil || w.Estimate == nil || (w.Estimate.Wait-was).Abs() > 2*time.Second {
				t.Errorf("%d of a higher tier wait: the wait was %v, error %v, and the estimate %+v", waiting, was, err, w.Estimate)
			}
			s.Clear()
			time.Sleep(time.Minute)
			wantAllFree(t, s)
		})
	}
}

// There is no estimate for an entry whose key is at its limit: others of it have to end first, and
// how long the key's take is not kept.
func TestB6_NoEstimateForAKeyAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{PerKey: 1})
		second := func(context.Context) (int, error) { time.Sleep(time.Second); return 0, nil }
		for range 20 {
			stint.Go(t.Context(), s, second)
		}
		time.Sleep(time.Second * 19 / 2)
		var last [2]*stint.Future[int]
		for i := range last {
			last[i] = stint.Go(t.Context(), s.Key("a"), second)
		}
		if w, _ := last[1].Why(); w.Estimate == nil {
			t.Error("nothing of the key runs, and there is no estimate")
		}
		time.Sleep(time.Second)
		if w, waits := last[1].Why(); !waits || w.Estimate != nil {
			t.Errorf("the key is at its limit: %+v", w.Estimate)
		}
		time.Sleep(time.Minute)
		wantAllFree(t, s)
	})
}

// Slots that come free in another process count like those that come free here.
func TestB6_EstimateOfSlotsFromElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := slotstest.NewPool(30)
		s, other := stint.New(30, stint.Config{Slots: pool.Join("a")}), stint.New(30, stint.Config{Slots: pool.Join("b")})
		ends := make(chan struct{})
		for range 30 {
			stint.Go(t.Context(), other, func(context.Context) (int, error) { <-ends; return 0, nil })
		}
		synctest.Wait()
		var last *stint.Future[int]
		for range 30 {
			last = stint.Go(t.Context(), s, func(context.Context) (int, error) { <-ends; return 0, nil })
		}
		for range 20 {
			time.Sleep(time.Second)
			ends <- struct{}{}
			synctest.Wait()
		}
		if w, _ := last.Why(); w.Estimate == nil || (w.Estimate.Wait-10*time.Second).Abs() > time.Second {
			t.Errorf("the estimate is %+v, want 10 s", w.Estimate)
		}
		close(ends)
		wantAllFree(t, s)
	})
}

// An estimate costs nothing for each slot of an entry that has very many, as it may after a Resize.
func TestB6_EstimateBesideAnEntryOfManySlots(t *testing.T) {
	for _, holders := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const many = 1 << 26
			s := stint.New(many, stint.Config{Holders: holders})
			second := func(context.Context) (int, error) { time.Sleep(time.Second); return 0, nil }
			_, _ = stint.Go(t.Context(), s, second).Wait(t.Context())
			permit, err := s.Weight(many).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.Resize(10)
			f := stint.Go(t.Context(), s, second)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w, waits := f.Why()
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; !waits || w.Estimate == nil || took > 1<<20 {
				t.Errorf("with holders %t, Why allocates %d bytes for %+v", holders, took, w)
			}
			permit.Release()
			_, _ = f.Wait(t.Context())
		})
	}
}
