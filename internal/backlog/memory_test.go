//go:build !race

// The race detector takes memory of its own, so the bounds hold only without it.

package backlog_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
)

// Keys, up to a million, that wait at the same time leave less than 1 MiB behind when they
// have all gone, whichever way they went.
func TestA5_KeysThatAreGoneLeaveNoMemory(t *testing.T) {
	const most = 1 << 20 // bytes
	for _, c := range []struct {
		name string
		n    int
		gone func(b *backlog.Backlog[int], entries []backlog.Entry[int])
	}{
		{"half removed, half run", 1_000_000, func(b *backlog.Backlog[int], entries []backlog.Entry[int]) {
			for i := range len(entries) / 2 {
				b.Remove(&entries[2*i])
			}
			for e := b.Peek(0); e != nil; e = b.Peek(0) {
				key := e.Key()
				b.Start(e)
				b.Keys().Finish(key)
			}
		}},
		{"removed", 100_000, func(b *backlog.Backlog[int], entries []backlog.Entry[int]) {
			for i := range entries {
				b.Remove(&entries[i])
			}
		}},
		{"set aside and removed", 100_000, func(b *backlog.Backlog[int], entries []backlog.Entry[int]) {
			for i := range entries {
				b.Keys().Block(entries[i].Key(), 1)
			}
			for i := range entries {
				key := entries[i].Key()
				b.Remove(&entries[i])
				b.Keys().Unblock(key, 1)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := backlog.New[int](backlog.Config{Max: 4, PerKey: 1})
			before := heapAlloc()
			pushAndLetGo(b, c.n, c.gone)
			if b.Len() != 0 || b.Keys().Len() != 0 {
				t.Fatalf("%d entries and %d keys are left", b.Len(), b.Keys().Len())
			}
			if more := heapAlloc() - before; more > most {
				t.Errorf("%d bytes are left of %d keys, want at most %d", more, c.n, most)
			}
			runtime.KeepAlive(b)
		})
	}
}

func pushAndLetGo(b *backlog.Backlog[int], n int, gone func(*backlog.Backlog[int], []backlog.Entry[int])) {
	entries := make([]backlog.Entry[int], n)
	for i := range entries {
		b.Push(&entries[i], backlog.Arrival{Tier: 3, Key: strconv.Itoa(i), Weight: 1})
	}
	gone(b, entries)
}

// Entries that came back to one queue leave their room while it still has one.
func TestA5_EntriesThatCameBackLeaveNoMemory(t *testing.T) {
	const n, most = 200_000, 1 << 20 // bytes
	b := backlog.New[int](backlog.Config{Max: 4})
	var first, youngest backlog.Entry[int]
	b.PushAt(&youngest, backlog.Arrival{Tier: 3, Weight: 1}, n+2)
	b.PushAt(&first, backlog.Arrival{Tier: 3, Weight: 1}, n+1)
	before := heapAlloc()
	func() {
		entries := make([]backlog.Entry[int], n)
		for i := range entries {
			b.PushAt(&entries[i], backlog.Arrival{Tier: 3, Weight: 1}, uint64(n-i))
		}
		for i := range entries {
			b.Remove(&entries[i])
		}
	}()
	if more := heapAlloc() - before; more > most {
		t.Errorf("%d bytes are left of %d entries, want at most %d", more, n, most)
	}
	if b.Len() != 2 {
		t.Errorf("%d entries are left, want 2", b.Len())
	}
}

func heapAlloc() int64 {
	runtime.GC()
	runtime.GC() // what the first one found, and what waited for that
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
