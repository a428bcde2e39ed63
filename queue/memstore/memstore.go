// Package memstore keeps durable tasks in memory. It is the store for tests, and for work
// that may be lost with its process. It fulfils [queue.Store], except that nothing
// survives the process.
package memstore

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// Store is a [queue.Store] in memory. It is safe for concurrent use.
type Store struct {
	*machine.Machine
	clock clock.Steady
}

var _ queue.Store = Store{}

// Config has the limits of a store. The zero value is a good default.
type Config struct {
	MaxPayload    int // bytes; 0 means 1 MiB, also for the next two
	MaxResult     int
	MaxCheckpoint int
	WatchBuffer   int // the number of events that a watcher may be behind; 0 means 1024
}

// New returns an empty store. It starts no goroutine, and needs no Close. It panics if a
// number in cfg is negative.
func New(cfg Config) Store {
	if min(cfg.MaxPayload, cfg.MaxResult, cfg.MaxCheckpoint, cfg.WatchBuffer) < 0 {
		panic(fmt.Sprintf("memstore: the numbers of a Config are 0 for the default, or more: %+v", cfg))
	}
	m, err := machine.Open(&rows{all: make(map[string][]byte)}, machine.Config{
		MaxPayload: cfg.MaxPayload, MaxResult: cfg.MaxResult, MaxCheckpoint: cfg.MaxCheckpoint,
		WatchBuffer: cfg.WatchBuffer,
	})
	if err != nil {
		panic(err) // an empty map has no invalid rows
	}
	return Store{m, clock.New()}
}

// Clock returns the clock for the times of calls in this process, which was read when the store was
// opened. Setting the system's clock does not change it. [queue.New] uses it.
func (s Store) Clock() clock.Steady { return s.clock }

// rows are the rows of a machine, in a map.
type rows struct {
	mu  sync.RWMutex
	all map[string][]byte
}

// Apply is as [machine.Rows] says.
func (r *rows) Apply(batch []machine.Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range batch {
		if c.Value == nil {
			delete(r.all, c.Key)
		} else {
			r.all[c.Key] = c.Value
		}
	}
	return nil
}

// Get is as [machine.Rows] says.
func (r *rows) Get(key string) ([]byte, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.all[key], nil
}

// Scan is as [machine.Rows] says. It visits all rows: the machine calls it only when it
// opens an empty store.
func (r *rows) Scan(from, to string, down bool, fn func(key string, value []byte) bool) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	keys := slices.Sorted(maps.Keys(r.all))
	if down {
		slices.Reverse(keys)
	}
	for _, key := range keys {
		if key >= from && key < to && !fn(key, r.all[key]) {
			break
		}
	}
	return nil
}

// Close is as [machine.Rows] says.
func (r *rows) Close() error { return nil }
