package machine_test

import (
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// pausedRows do something in the middle of a step, when it reads a row.
type pausedRows struct {
	*rows
	entered chan struct{} // receives when a batch is about to be applied
	left    int           // reads until then
	then    func()
}

func (r *pausedRows) Apply(batch []machine.Change) error {
	r.entered <- struct{}{}
	return r.rows.Apply(batch)
}

func (r *pausedRows) Get(key string) ([]byte, error) {
	if r.left--; r.left == 0 {
		r.then()
	}
	return r.rows.Get(key)
}

// TestC6_StepsAreNotCutApart: whoever waits for a sync applies the changes of all
// others with its own, but not a part of a step that is in the middle of it.
func TestC6_StepsAreNotCutApart(t *testing.T) {
	r := &pausedRows{rows: newRows(), entered: make(chan struct{}, 10)}
	m, err := machine.Open(r, machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	var source queue.IDs
	ids := []queue.ID{source.New(now), source.New(now), source.New(now), source.New(now)}
	submit := func(id queue.ID) {
		if _, err := m.Submit(t.Context(), now, []queue.NewTask{{ID: id, Spec: queue.Spec{Kind: "k"}}}); err != nil {
			t.Error(err)
		}
	}
	submit(ids[0])
	submit(ids[1])
	<-r.entered
	<-r.entered

	r.gate = make(chan struct{})
	third, fourth := make(chan struct{}), make(chan struct{})
	go func() { submit(ids[2]); close(third) }()
	<-r.entered // it applies its own changes
	go func() { submit(ids[3]); close(fourth) }()
	for c := 0; c < 4; { // until the last one has only to apply its own and those of others
		stats, err := m.Stats(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		c = stats.Queues["default"].States[queue.Waiting]
	}
	var crashed *rows
	r.left = 4 // each of the two is read to be found, and to be cancelled
	r.then = func() {
		r.gate <- struct{}{}
		r.gate <- struct{}{}
		<-third
		<-fourth
		crashed = r.crash()
		close(r.gate)
	}
	n, err := m.Command(t.Context(), now, queue.Command{Do: queue.OnCancel, Filter: queue.Filter{IDs: ids[:2]}})
	if err != nil || n != 2 || crashed == nil {
		t.Fatalf("%d were cancelled, and the error is %v", n, err)
	}
	for _, id := range ids {
		if crashed.all["t"+string(id[:])] == nil {
			t.Errorf("task %s has been applied as cancelled, in the middle of the call", id)
		}
	}
}
