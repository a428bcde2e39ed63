package machine //nolint:testpackage // no answer shows what the set remembers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
)

// inMap is rows that are never opened again.
type inMap map[string][]byte

func (r inMap) Apply(batch []Change) error {
	for _, c := range batch {
		r[c.Key] = c.Value
	}
	return nil
}

func (r inMap) Get(key string) ([]byte, error)                            { return r[key], nil }
func (inMap) Scan(_, _ string, _ bool, _ func(string, []byte) bool) error { return nil }
func (inMap) Close() error                                                { return nil }

// Workers come and go, and ask for any kind of any queue. The set stays bounded, except
// for the last worker of each kind that has had tasks.
func TestWorkersAreForgotten(t *testing.T) {
	m, err := Open(inMap{}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	var ids queue.IDs
	task := queue.NewTask{ID: ids.New(now), Spec: queue.Spec{Kind: "kind"}}
	if _, err := m.Submit(t.Context(), now, []queue.NewTask{task}); err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		name := fmt.Sprint("worker ", i)
		w := queue.Worker{Name: name, Kinds: map[string][]string{"": {"kind"}, "queue of " + name: {"kind"}}}
		if i >= 1000 {
			w.Kinds = nil
		}
		if _, err := m.Heartbeat(t.Context(), now, w, nil); err != nil {
			t.Fatal(err)
		}
		c := queue.Claim{Worker: name, Queue: "queue of " + name, Kinds: []string{"other"}, Max: 1, Lease: 1}
		if _, err := m.Claim(t.Context(), now, c); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
	}
	if n := len(m.workerSet.byName); n > 2 {
		t.Errorf("%d workers are remembered", n)
	}
	if n := len(m.queues.byName); n != 1 {
		t.Errorf("there are %d queues, and one has had a task", n)
	}
	if n, most := len(m.workerSet.seen), int(seenTTL/time.Minute)+2; n > most {
		t.Errorf("the last workers of %d kinds are remembered, want at most %d", n, most)
	}
	reasons, err := m.Explain(t.Context(), now, task.ID)
	if err != nil || len(reasons) == 0 || reasons[0].LastSeen.Worker != "worker 999" {
		t.Errorf("the reasons are %+v, %v", reasons, err)
	}
}
