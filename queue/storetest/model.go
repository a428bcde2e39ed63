package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
)

// Model drives a store with random calls, does the same to a store that is
// obviously right, and compares every answer and, after every call, every task.
// Where the contract leaves a choice, the other store follows the one that is
// tested, once the choice has been found to be one.
//
// The seed is logged. It is fixed unless the environment variable STINT_SEED
// gives another one, or "random" for a new one each time.
func Model(t *testing.T, open Open, calls int) {
	t.Helper()
	m := newModel(t, open)
	for i := range calls {
		what, err := m.call()
		if err == nil {
			err = m.compare()
		}
		if err == nil && i%50 == 0 {
			err = checkCounts(m.Context(), m.Store, m.find(queue.Filter{}))
		}
		if err != nil {
			m.Fatalf("call %d: %s %+v\n%v", i, what, m.with, err)
		}
	}
	m.Logf("%d tasks were submitted, and %d leases given", len(m.ids), len(m.leases))
}

// model is a store in use, and what it is held against.
type model struct {
	*trial
	right   *taken
	rnd     *rand.Rand
	ids     []queue.ID      // of all that were ever submitted
	last    []queue.NewTask // the last call of Submit
	leases  []queue.Task    // all that were ever given
	with    any             // what the present call is made with
	batches [3]queue.ID
}

func newModel(t *testing.T, open Open) *model {
	t.Helper()
	m := &model{trial: newTrial(t, open(t, Config{})), rnd: seeded.Rand(t)}
	m.right = &taken{newReference(Config{}), m.Takeovers}
	m.trial.ids.Random = m.rnd.Uint64
	for i := range m.batches {
		m.batches[i] = m.trial.ids.New(m.now)
	}
	// In which order retention and other things that are due at the same time
	// happen is open, so nothing is forgotten here but by hand.
	const years = 10 * 365 * 24 * time.Hour
	keep := queue.Retention{Age: years}
	m.ok("Configure", m.changes("", queue.Change{Set: queue.Settings{Keep: keep, KeepDead: keep}}))
	return m
}

// call makes one call, and returns what it was.
func (m *model) call() (what string, err error) {
	m.pass(m.soon(time.Second))
	if m.rnd.IntN(50) == 0 {
		m.pass(m.soon(2 * time.Minute))
	}
	calls := []struct {
		share int
		name  string
		do    func() error
	}{
		{24, "Submit", m.submits},
		{22, "Claim", m.claims},
		{22, "Settle", m.settles},
		{6, "Heartbeat", m.heartbeats},
		{12, "Command", m.command},
		{2, "Configure", m.sets},
		{1, "PauseQueue", m.pauses},
		{4, "Reschedule", m.reschedules},
		{12, "Maintain", m.maintains},
		{4, "Find", m.finds},
		{4, "Explain", m.explains},
		{1, "clear", m.clears},
		{2, "Reopen", m.reopens},
	}
	n := m.rnd.IntN(116)
	for _, c := range calls {
		if n -= c.share; n < 0 {
			m.with = nil
			return c.name, c.do()
		}
	}
	panic("the shares do not add up")
}

// soon is a random time, to the nanosecond: hardly two things are due at once.
func (m *model) soon(most time.Duration) time.Duration {
	return time.Duration(m.rnd.Int64N(int64(most)))
}

// pick is one of some, at random.
func pick[T any](rnd *rand.Rand, of ...T) T { return of[rnd.IntN(len(of))] }

// sometimes is v once in n times, and else nothing.
func sometimes[T any](rnd *rand.Rand, n int, v T) (nothing T) {
	if rnd.IntN(n) == 0 {
		return v
	}
	return nothing
}

// known returns up to n random tasks, among them some that are forgotten; never nil.
func (m *model) known(n int) (ids []queue.ID) {
	ids = []queue.ID{}
	for range n {
		if len(m.ids) > 0 {
			ids = append(ids, m.ids[max(0, len(m.ids)-1-m.rnd.IntN(60))])
		}
	}
	return ids
}

// both compares the errors of two stores, which may differ in words; done says
// that the call was made.
func both(got, want error) (done bool, err error) {
	if got == nil && want == nil {
		return true, nil
	}
	for _, class := range []error{
		queue.ErrInvalid, queue.ErrNotFound, queue.ErrFull, queue.ErrTooLarge, queue.ErrStale, queue.ErrChanged,
		queue.ErrClosed,
	} {
		if errors.Is(got, class) && errors.Is(want, class) {
			return false, nil
		}
	}
	return false, fmt.Errorf("the error is %w, want %w", cmp.Or(got, errNone), cmp.Or(want, errNone))
}

var errNone = errors.New("none")

// compare compares all tasks, at the same time: whether a call that was refused
// moves it on is open.
func (m *model) compare() error {
	clock := queue.Worker{Name: "clock"}
	for _, store := range []queue.Store{m.Store, m.right} {
		if _, err := store.Heartbeat(m.Context(), m.now, clock, nil); err != nil {
			return fmt.Errorf("heartbeat: %w", err)
		}
	}
	got := m.find(queue.Filter{})
	want := m.right.All()
	if g, w := idsOf(got), idsOf(want); !slices.Equal(g, w) {
		return fmt.Errorf("there are the tasks\n%v, want\n%v", g, w)
	}
	if err := m.compareOldest(); err != nil {
		return err
	}
	for i := range got {
		if g, w := summarize(got[i]), summarize(want[i]); g != w {
			return fmt.Errorf("task %s is\n%+v, want\n%+v\nIt has lived\n%s, and was to live\n%s",
				got[i].ID, g, w, life(got[i]), life(want[i]))
		}
		if err := checkTask(&got[i]); err != nil {
			return fmt.Errorf("task %s: %w\n%s", got[i].ID, err, life(got[i]))
		}
	}
	return nil
}

// compareOldest compares since when tasks wait. A rate that allows a start by the
// time of Stats, and did not at the last call before, may hold a task yet.
func (m *model) compareOldest() error {
	got, gotErr := m.Store.Stats(m.Context(), m.now)
	want, wantErr := m.right.Stats(m.Context(), m.now)
	if done, err := both(gotErr, wantErr); !done {
		return err
	}
	for name, c := range want.Queues {
		if g := got.Queues[name].Oldest; !g.Equal(c.Oldest) {
			return fmt.Errorf("the oldest of queue %s waits since %v, want %v", name, g, c.Oldest)
		}
	}
	return nil
}

// summary is what has to be equal in a task.
type summary struct {
	state             queue.State
	hold              queue.Hold // the binding one
	order             queue.Order
	worker            string
	token             queue.Token
	until             int64
	failures, crashes int
	progress          queue.Progress
	checkpoint        string
	changed           int64
	failed            bool
	steps             string
}

func summarize(t queue.Task) summary {
	s := summary{
		state: t.State, order: t.Order, worker: t.Lease.Worker, token: t.Lease.Token, failures: t.Failures,
		crashes: t.Crashes, checkpoint: string(t.Checkpoint), changed: t.Changed.UnixNano(),
		failed: t.Error != "",
	}
	if t.State == queue.Running { // when the progress of the last attempt is forgotten is open
		s.progress = t.Progress
	}
	if len(t.Holds) > 0 {
		s.hold = t.Holds[0]
	}
	if !t.Lease.Until.IsZero() {
		s.until = t.Lease.Until.UnixNano()
	}
	for _, step := range t.Steps {
		// When several things are due at once, a task may be held and let go in between.
		if step.On != queue.OnHold && step.On != queue.OnUnhold {
			s.steps += step.On.String() + " "
		}
	}
	return s
}
