package queuetest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
)

// ErrFault is what [Flaky] answers. It is a [queue.ErrUnavailable], as a store
// would answer that cannot be reached.
var ErrFault = fmt.Errorf("queuetest: a fault that the test wanted: %w", queue.ErrUnavailable)

// Around is what happens around a call of a store, whose name is that of the
// method, such as "Claim". It makes the call by calling do, and what it returns
// is the answer's error. So it can
//
//   - fail before the store has heard of the call: return an error, and never
//     call do;
//   - lose the answer: call do, and return an error nevertheless;
//   - be slow, before or after: sleep;
//   - hang: wait for ctx, which a settle's never ends;
//   - have the call arrive twice: call do twice, the second answer counts.
//
// It is called from many goroutines at once.
type Around func(ctx context.Context, call string, do func() error) error

// Faulty returns a store whose calls go through around. Listen and Close do not.
// The values of an answer are those of the store if around returns no error.
func Faulty(store queue.Store, around Around) queue.Store { return &faulty{store, around} }

// Flaky has one in n calls fail, half of them before and half of them after the
// store has done what it was asked, with [ErrFault]. Which ones is decided by the
// seed for each method apart, since the loops of a queue make their calls in any
// order. Watch is left alone.
func Flaky(seed uint64, n int) Around {
	var mu sync.Mutex
	methods := make(map[string]*rand.Rand)
	fate := func(method string) (fails, before bool) {
		mu.Lock()
		defer mu.Unlock()
		rng := methods[method]
		if rng == nil {
			h := fnv.New64a()
			h.Write([]byte(method))
			rng = rand.New(rand.NewPCG(seed, h.Sum64()))
			methods[method] = rng
		}
		return rng.IntN(n) == 0, rng.IntN(2) == 0
	}
	return func(_ context.Context, call string, do func() error) error {
		if call == "Watch" {
			return do()
		}
		fails, before := fate(call)
		if fails && before {
			return ErrFault
		}
		if err := do(); err != nil || !fails {
			return err
		}
		return ErrFault
	}
}

// faulty is a store with something around it. What is new in the contract and
// has no method here is done by the store at once.
type faulty struct {
	queue.Store
	around Around
}

// call has around make a call. A second answer replaces the first; that of a
// call that is said to have failed is not given.
func call[T any](ctx context.Context, f *faulty, name string, do func() (T, error)) (T, error) {
	var answer, none T
	err := f.around(ctx, name, func() (err error) {
		answer, err = do()
		return err
	})
	if err != nil {
		return none, err
	}
	return answer, nil
}

func (f *faulty) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	return call(ctx, f, "Submit", func() ([]queue.Receipt, error) { return f.Store.Submit(ctx, now, tasks) })
}

func (f *faulty) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	return call(ctx, f, "Claim", func() (queue.Claimed, error) { return f.Store.Claim(ctx, now, c) })
}

func (f *faulty) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	return call(ctx, f, "Settle", func() ([]error, error) { return f.Store.Settle(ctx, now, outcomes) })
}

func (f *faulty) Beat(
	ctx context.Context, now time.Time, w queue.Worker, beats []queue.Beat,
) ([]queue.Answer, error) {
	return call(ctx, f, "Beat", func() ([]queue.Answer, error) { return f.Store.Beat(ctx, now, w, beats) })
}

func (f *faulty) Command(ctx context.Context, now time.Time, c queue.Command) (int, error) {
	return call(ctx, f, "Command", func() (int, error) { return f.Store.Command(ctx, now, c) })
}

func (f *faulty) Find(ctx context.Context, filter queue.Filter, p queue.Page) ([]queue.Task, error) {
	return call(ctx, f, "Find", func() ([]queue.Task, error) { return f.Store.Find(ctx, filter, p) })
}

func (f *faulty) Explain(ctx context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	return call(ctx, f, "Explain", func() ([]queue.Reason, error) { return f.Store.Explain(ctx, now, id) })
}

func (f *faulty) Stats(ctx context.Context, now time.Time) (queue.Stats, error) {
	return call(ctx, f, "Stats", func() (queue.Stats, error) { return f.Store.Stats(ctx, now) })
}

func (f *faulty) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	return f.around(ctx, "Configure", func() error { return f.Store.Configure(ctx, now, name, c) })
}

func (f *faulty) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	return f.around(ctx, "PauseQueue", func() error { return f.Store.PauseQueue(ctx, now, name, p) })
}

func (f *faulty) Settings(ctx context.Context) (map[string]queue.Configured, error) {
	return call(ctx, f, "Settings", func() (map[string]queue.Configured, error) { return f.Store.Settings(ctx) })
}

func (f *faulty) Schedules(ctx context.Context) ([]queue.Schedule, error) {
	return call(ctx, f, "Schedules", func() ([]queue.Schedule, error) { return f.Store.Schedules(ctx) })
}

func (f *faulty) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	return f.around(ctx, "Reschedule", func() error { return f.Store.Reschedule(ctx, now, r) })
}

func (f *faulty) Tend(ctx context.Context, now time.Time, limit int) (time.Time, error) {
	return call(ctx, f, "Tend", func() (time.Time, error) { return f.Store.Tend(ctx, now, limit) })
}

func (f *faulty) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	return f.around(ctx, "Watch", func() error { return f.Store.Watch(ctx, begun, fn) })
}
