package machine_test

import (
	"slices"
	"testing"

	"github.com/stintgo/stint/queue"
)

// The tasks that come after a task which a command ends go on before the command changes the next
// one, as their steps show.
func TestC12_CommandReleasesBeforeTheNextTask(t *testing.T) {
	m := open(t, newRows())
	var ids queue.IDs
	first := newTask(&ids, queue.Spec{})
	second := newTask(&ids, queue.Spec{Options: queue.Options{AfterAny: []queue.ID{first.ID}}})
	submit(t, m, first, second)
	cancel := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{Kind: "kind"}}
	if n, err := m.Command(t.Context(), start, cancel); n != 2 || err != nil {
		t.Fatalf("cancel changes %d tasks, error %v", n, err)
	}
	found, err := m.Find(t.Context(), queue.Filter{IDs: []queue.ID{second.ID}}, queue.Page{})
	if err != nil || len(found) != 1 {
		t.Fatalf("found %d tasks, error %v", len(found), err)
	}
	var got []queue.Trigger
	for _, step := range found[0].Steps {
		got = append(got, step.On)
	}
	if want := []queue.Trigger{queue.OnSubmit, queue.OnUnhold, queue.OnCancel}; !slices.Equal(got, want) {
		t.Errorf("the steps of the second are %v, want %v", got, want)
	}
}
