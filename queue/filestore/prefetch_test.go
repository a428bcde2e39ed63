package filestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// TestC10_PrefetchedRowsAreTheirTasks: of a backlog that was there before, which is read
// in goes, each task gets its own row.
func TestC10_PrefetchedRowsAreTheirTasks(t *testing.T) {
	const n = queue.MaxSubmit
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	disk := newCrashable(vfs.NewCrashableMem())
	s, err := filestore.OpenIn(disk, "store", filestore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var ids queue.IDs
	tasks := make([]queue.NewTask, n)
	for i := range tasks {
		tasks[i] = queue.NewTask{ID: ids.New(now), Spec: queue.Spec{Kind: "k", Payload: fmt.Append(nil, i)}}
	}
	if _, err := s.Submit(t.Context(), now, tasks); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, disk, "store", filestore.Config{})
	for i := 0; i < n; {
		c, err := s.Claim(t.Context(), now, queue.Claim{Worker: "w", Kinds: []string{"k"}, Max: 7, Lease: time.Minute})
		if err != nil || len(c.Tasks) == 0 {
			t.Fatalf("a claim got %d tasks and error %v", len(c.Tasks), err)
		}
		for _, task := range c.Tasks {
			if task.ID != tasks[i].ID || string(task.Payload) != fmt.Sprint(i) {
				t.Fatalf("task %d is %s with payload %q, want %s", i, task.ID, task.Payload, tasks[i].ID)
			}
			i++
		}
	}
}
