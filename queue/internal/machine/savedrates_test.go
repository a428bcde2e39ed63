package machine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// startsAt claims as many tasks as possible at a time, settles them, and returns their keys.
func startsAt(t *testing.T, m *machine.Machine, at time.Time) (keys []string) {
	t.Helper()
	got, err := m.Claim(t.Context(), at, queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: 99, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := make([]queue.Outcome, len(got.Tasks))
	for i, task := range got.Tasks {
		keys = append(keys, task.Key)
		outcomes[i] = queue.Outcome{ID: task.ID, Token: task.Lease.Token, Kind: queue.OutcomeSuccess}
	}
	if _, err := m.Settle(t.Context(), at, outcomes); err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

func submitKeys(t *testing.T, m *machine.Machine, ids *queue.IDs, keys ...string) {
	t.Helper()
	for _, key := range keys {
		submit(t, m, newTask(ids, queue.Spec{Options: queue.Options{Key: key}}))
	}
}

func configure(t *testing.T, m *machine.Machine, s queue.Settings) {
	t.Helper()
	if err := m.Configure(t.Context(), start, queue.DefaultQueue, queue.Change{Set: s}); err != nil {
		t.Fatal(err)
	}
}

func wantKeys(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s, tasks of the keys %q start, want %q", when, got, want)
	}
}

// What is spent of rates is not regained by closing a store, even if it is opened and closed
// again without a call. A crash regains it.
func TestC12_RatesOutliveClosing(t *testing.T) {
	p := newProcess(t)
	rates := queue.Settings{
		Rate: queue.Rate{PerSecond: 1, Burst: 5}, KeyRate: queue.Rate{PerSecond: 0.5, Burst: 2},
	}
	configure(t, p.Machine, rates)
	submitKeys(t, p.Machine, &p.ids, "a", "a", "a", "a", "b", "b")
	wantKeys(t, "at first", startsAt(t, p.Machine, start), "a", "a", "b", "b")
	submitKeys(t, p.Machine, &p.ids, "c", "c", "c", "c", "c", "c")
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		p.crash()
	}
	wantKeys(t, "after closing", startsAt(t, p.Machine, start), "c")
	wantKeys(t, "2 s later", startsAt(t, p.Machine, start.Add(2*time.Second)), "a", "c")
	p.crash()
	wantKeys(t, "after a crash", startsAt(t, p.Machine, start.Add(2*time.Second)), "a", "c", "c")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.crash()
	configure(t, p.Machine, queue.Settings{Rate: queue.Rate{PerSecond: 2}})
	wantKeys(t, "at a new rate", startsAt(t, p.Machine, start.Add(2*time.Second)), "c")
}

// After a process whose clock was ahead, a rate allows a start after no more than its interval.
func TestC12_RatesAfterAClockAhead(t *testing.T) {
	p := newProcess(t)
	configure(t, p.Machine, queue.Settings{
		Rate: queue.Rate{PerSecond: 3, Burst: 3}, KeyRate: queue.Rate{PerSecond: 0.5},
	})
	submitKeys(t, p.Machine, &p.ids, "a", "a", "b", "c", "d")
	wantKeys(t, "an hour ahead", startsAt(t, p.Machine, start.Add(time.Hour)), "a", "b", "c")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.crash()
	wantKeys(t, "at the right time", startsAt(t, p.Machine, start))
	wantKeys(t, "after the interval", startsAt(t, p.Machine, start.Add(time.Second/3+1)), "d")
	wantKeys(t, "after that of the key", startsAt(t, p.Machine, start.Add(2*time.Second)), "a")
}
