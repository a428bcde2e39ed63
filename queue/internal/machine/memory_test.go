//go:build !race

package machine_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

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

// The limits of single keys in each queue are in memory once: a change of one, and Stats,
// allocate nothing for each pair of a queue and a key.
func TestC10_LimitsOfKeysInManyQueues(t *testing.T) {
	const queues, keys, most = 200, 500, 4 << 20 // bytes: the buffers of rows vary
	few, many := queuesWithLimits(t, 1, keys), queuesWithLimits(t, queues, keys)
	change := func(m *machine.Machine, key int) func() {
		c := queue.Change{Key: fmt.Sprint("key ", key), Set: queue.Settings{Max: 7, Rate: queue.Rate{PerSecond: 7}}}
		return func() {
			if err := m.Configure(t.Context(), start, "", c); err != nil {
				t.Fatal(err)
			}
		}
	}
	stats := func(m *machine.Machine) func() {
		return func() {
			if _, err := m.Stats(t.Context(), start); err != nil {
				t.Fatal(err)
			}
		}
	}
	if of, more := allocated(change(few, 1)), allocated(change(many, 1)); more > of+most {
		t.Errorf("a change of the limits of a key allocates %d bytes with 1 queue, and %d with %d", of, more, queues)
	}
	if of, more := allocated(stats(queuesWithLimits(t, queues, 0))), allocated(stats(many)); more > of+most {
		t.Errorf("Stats of %d queues allocates %d bytes without limits of keys, and %d with %d", queues, of, more, keys)
	}
}

// queuesWithLimits returns a machine with some queues, and with limits for some keys in each
// queue.
func queuesWithLimits(t *testing.T, queues, keys int) *machine.Machine {
	t.Helper()
	m := open(t, newRows())
	var ids queue.IDs
	for i := range queues {
		submit(t, m, newTask(&ids, queue.Spec{Options: queue.Options{Queue: fmt.Sprint("queue ", i)}}))
	}
	for i := range keys {
		c := queue.Change{Key: fmt.Sprint("key ", i), Set: queue.Settings{Max: 5, Rate: queue.Rate{PerSecond: 5}}}
		if err := m.Configure(t.Context(), start, "", c); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// allocated returns the bytes that a call allocates.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Forgotten queues leave no memory, however many there were.
func TestC10_QueuesOfNoUseLeaveNothing(t *testing.T) {
	const rounds, names, most = 20, 1000, 512 << 10 // bytes
	m, err := machine.Open(nowhere{}, machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	for round := range rounds {
		at := start.Add(time.Duration(round) * 2 * day)
		for i := range names {
			name := fmt.Sprint(round, "-", i)
			for _, s := range []queue.Settings{{Max: 1}, {}} {
				if err := m.Configure(t.Context(), at, name, only(s)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 2 { // a call looks at a bounded number of queues
			maintainAt(t, m, at)
		}
		for range 2 {
			maintainAt(t, m, at.Add(day))
		}
	}
	if got := queuesOf(t, m); len(got) > 0 {
		t.Errorf("%d queues are left", len(got))
	}
	if grown := int64(heap()) - int64(before); grown > most {
		t.Errorf("%d queues that are gone have left %d bytes", rounds*names, grown)
	} else {
		t.Logf("they have left %d bytes", grown)
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
