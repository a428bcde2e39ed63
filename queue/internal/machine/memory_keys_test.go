//go:build !race

package machine_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// taskRows keeps the rows of tasks alone: other rows are not read again.
type taskRows struct{ *rows }

func (r taskRows) Apply(batch []machine.Change) error {
	var tasks []machine.Change
	for _, c := range batch {
		if strings.HasPrefix(c.Key, "t") {
			tasks = append(tasks, c)
		}
	}
	return r.rows.Apply(tasks)
}

// Keys whose rates count, and unique names that outlive their tasks, leave less than 2
// MiB when their time is over, however many there were at once.
func TestC12_KeysAndUniqueNamesThatAreGoneLeaveNoMemory(t *testing.T) {
	const n, most = 60_000, 2 << 20 // bytes
	kept := newRows()
	m := openOn(t, taskRows{kept})
	var ids queue.IDs
	s := queue.Settings{KeyRate: queue.Rate{PerSecond: 1.0 / 36_000}, Keep: queue.Retention{Age: time.Second}}
	if err := m.Configure(t.Context(), start, "default", queue.Change{Set: s}); err != nil {
		t.Fatal(err)
	}
	runOnePerKey(t, m, &ids, 0, 1000)
	before := heap()
	for first := 1000; first < n; first += 1000 {
		runOnePerKey(t, m, &ids, first, 1000)
	}
	full := heap()
	for range 10 { // keys and names are removed in several calls
		if _, err := m.Maintain(t.Context(), start.Add(72*time.Hour), 0); err != nil {
			t.Fatal(err)
		}
	}
	clear(kept.all)
	kept.all = map[string][]byte{}
	after := heap()
	t.Logf("%d bytes more with all, %d more without", int64(full-before), int64(after-before))
	if int64(full-before) < 2*most {
		t.Errorf("the keys and names took %d bytes: this test shows nothing", full-before)
	}
	if more := int64(after - before); more > most {
		t.Errorf("%d bytes are left of %d keys and unique names, want at most %d", more, n, most)
	}
	runtime.KeepAlive(m)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

// runOnePerKey submits a task of each of n keys, runs them, and lets them be forgotten.
func runOnePerKey(t *testing.T, m *machine.Machine, ids *queue.IDs, first, n int) {
	t.Helper()
	var tasks []queue.NewTask
	for i := range n {
		name := fmt.Sprint("name ", first+i)
		o := queue.Options{Key: name, Unique: name, UniqueFor: 24 * time.Hour}
		tasks = append(tasks, newTask(ids, queue.Spec{Options: o}))
	}
	submit(t, m, tasks...)
	for done := 0; done < n; {
		claimed := claim(t, m, n)
		if len(claimed) == 0 {
			t.Fatalf("%d of %d tasks start", done, n)
		}
		var outcomes []queue.Outcome
		for _, c := range claimed {
			outcomes = append(outcomes, queue.Outcome{ID: c.ID, Token: c.Lease.Token, Kind: queue.OutcomeSuccess})
		}
		answers, err := m.Settle(t.Context(), start, outcomes)
		if err != nil || answers[0] != nil {
			t.Fatal(answers, err)
		}
		done += len(claimed)
	}
	if _, err := m.Maintain(t.Context(), start.Add(time.Duration(2+first/n)*time.Second), 0); err != nil {
		t.Fatal(err)
	}
}
