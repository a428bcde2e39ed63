package durable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint/bench/measure"
)

// The tasks of a turn. They come at random times, so that nothing that looks in
// intervals always has the same luck.
const (
	lightTasks   = 400
	shortestGap  = 2 * time.Millisecond
	longestExtra = 6 * time.Millisecond
)

// latency is how long a task takes from the beginning of its submission to the
// beginning of its handler, while there is hardly anything else to do.
func (s *Systems) latency() measure.Case {
	return measure.Case{
		Name:     "from submit to start, one task every 5 ms",
		Ours:     ours,
		Readings: []measure.Reading{{Name: "p50", Unit: "ns"}, {Name: "p99", Unit: "ns"}},
		Goals:    []string{"p50 ≤ 0.3 ms", "p99 ≤ 1.5 ms"},
		Subjects: []measure.Subject{
			{Name: ours, Probe: s.starting(openStint)},
			{Name: oursMemory, Probe: s.starting(openStintMemory)},
			{Name: asynqAlways, Probe: s.starting(openAsynqAlways)},
			{Name: asynqEverySec, Probe: s.starting(openAsynqEverySec)},
			{Name: asynqDefault, Probe: s.starting(openAsynqDefault)},
			{Name: riverTuned, Probe: s.starting(openRiverTuned)},
			{Name: riverDefault, Probe: s.starting(openRiverDefault)},
			{Name: natsSynced, Probe: s.starting(openNATSSynced)},
			{Name: natsNotSynced, Probe: s.starting(openNATS)},
			{Name: backliteFull, Probe: s.starting(openBacklite)},
		},
	}
}

// starting measures how long tasks take until they start.
func (s *Systems) starting(open opener) func(*measure.Stage) (measure.Values, error) {
	return s.probe(func(t *turn) (measure.Values, error) {
		k, err := open(t)
		if err != nil {
			return nil, err
		}
		waits := &waits{begun: measure.Now(), seen: newTally()}
		if err := k.(system).work(waits.started); err != nil {
			return nil, err
		}
		n := lightTasks
		if t.Once {
			n /= 10 // each has to be waited for
		}
		waits.seen.expect(n)
		for range n {
			time.Sleep(shortestGap + rand.N(longestExtra))
			if err := k.submit(int64(measure.Since(waits.begun))); err != nil {
				return nil, err
			}
		}
		if err := waits.seen.wait(); err != nil {
			return nil, err
		}
		return waits.values(n)
	})
}

// waits are how long tasks have waited. A stamp is the time since begun.
type waits struct {
	begun time.Time
	seen  *tally

	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) started(stamp int64) {
	waited := measure.Since(w.begun) - time.Duration(stamp)
	w.mu.Lock()
	w.all = append(w.all, waited)
	w.mu.Unlock()
	w.seen.one()
}

func (w *waits) values(n int) (measure.Values, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) != n {
		return nil, fmt.Errorf("%d of %d tasks started", len(w.all), n)
	}
	slices.Sort(w.all)
	return measure.Values{
		"p50": float64(w.all[n/2]),
		"p99": float64(w.all[n*99/100]),
	}, nil
}
