package machine_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// nowhere is rows that are never read again.
type nowhere struct{}

func (nowhere) Apply([]machine.Change) error { return nil }

func (nowhere) Get(string) ([]byte, error) { return nil, nil }

func (nowhere) Scan(string, string, bool, func(string, []byte) bool) error { return nil }

func (nowhere) Close() error { return nil }

// The memory for a waiting task is small enough for ten million of them in 2 GiB, with as
// much again for the collector.
func TestC10_MemoryOfAPendingTask(t *testing.T) {
	const tasks, most = 200_000, 160 // bytes; slabs and tables have spare room
	m, err := machine.Open(nowhere{}, machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	var ids queue.IDs
	batch := make([]queue.NewTask, 1000)
	for range tasks / len(batch) {
		for i := range batch {
			batch[i] = newTask(&ids, queue.Spec{Payload: make([]byte, 100)})
		}
		if _, err := m.Submit(t.Context(), start, batch); err != nil {
			t.Fatal(err)
		}
	}
	clear(batch)
	if each := (heap() - before) / tasks; each > most {
		t.Errorf("a task takes %d bytes of memory, and may take %d", each, most)
	} else {
		t.Logf("a task takes %d bytes", each)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

// Listeners that have stopped leave no memory, whether or not their queues exist.
func TestC1_ListenersLeaveNothing(t *testing.T) {
	const names, most = 100_000, 1 << 20 // bytes: room for the 1000 queues that exist at a time
	m, err := machine.Open(nowhere{}, machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	for i := 0; i < names; {
		var stops []func()
		for range 1000 {
			_, stop := m.Listen(fmt.Sprint("unused ", i))
			_, other := m.Listen("")
			stops = append(stops, stop, other)
			i++
		}
		for _, stop := range stops {
			stop()
		}
	}
	if more := int64(heap()) - int64(before); more > most {
		t.Errorf("%d queues that are not listened to any more take %d bytes", names, more)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

// heap returns the bytes of the heap that are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // finalizers that the first collection has found
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
