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

// ErrFault is the error that [Flaky] injects. It wraps [queue.ErrUnavailable], like the
// error of a store that cannot be reached.
var ErrFault = fmt.Errorf("queuetest: injected fault: %w", queue.ErrUnavailable)

// Around wraps a call of a store. call is the name of the method, such as "Claim"; do
// makes the call. The caller of the store gets the error that Around returns. So Around
// can
//
//   - fail the call before it reaches the store: return an error without calling do;
//   - lose the answer: call do, and return an error nevertheless;
//   - delay the call or the answer: sleep;
//   - hang: wait for ctx, which never ends in a call of Settle;
//   - duplicate the call: call do twice; the second answer counts.
//
// It must be safe for concurrent use.
type Around func(ctx context.Context, call string, do func() error) error

// Faulty returns a store whose calls, except Listen and Close, go through around. If
// around returns no error, the caller gets the values of the store.
func Faulty(store queue.Store, around Around) queue.Store { return &faulty{store, around} }

// Flaky fails one in n calls with [ErrFault], on average: half of them before and half of
// them after the store has executed the call. The seed determines which ones for each
// method separately, because the order of calls of different methods is not
// deterministic. Flaky does not fail Watch.
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

// faulty is a store whose calls go through around. Methods of the contract that it does
// not override go directly to the store.
type faulty struct {
	queue.Store
	around Around
}

// call makes a call through around. If around calls do twice, the second answer replaces
// the first; if around returns an error, the answer is dropped.
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

func (f *faulty) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	return call(ctx, f, "Heartbeat", func() ([]queue.Answer, error) { return f.Store.Heartbeat(ctx, now, w, heartbeats) })
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

func (f *faulty) Schedules(ctx context.Context) ([]queue.ScheduleState, error) {
	return call(ctx, f, "Schedules", func() ([]queue.ScheduleState, error) { return f.Store.Schedules(ctx) })
}

func (f *faulty) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	return f.around(ctx, "Reschedule", func() error { return f.Store.Reschedule(ctx, now, r) })
}

func (f *faulty) Maintain(ctx context.Context, now time.Time, limit int) (time.Time, error) {
	return call(ctx, f, "Maintain", func() (time.Time, error) { return f.Store.Maintain(ctx, now, limit) })
}

func (f *faulty) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	return f.around(ctx, "Watch", func() error { return f.Store.Watch(ctx, begun, fn) })
}
