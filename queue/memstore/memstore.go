// Package memstore keeps durable tasks' state in memory. It is the store for
// tests, and for work that may be lost with its process: everything that
// [queue.Store] says holds, but that nothing survives the process.
package memstore

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// Store is a [queue.Store] in memory. It is safe for concurrent use.
type Store struct{ *machine.Machine }

var _ queue.Store = Store{}

// Config bounds what a store keeps. The zero value is a good default.
type Config struct {
	MaxPayload    int // bytes; 1 MiB if it is 0, as the others
	MaxResult     int
	MaxCheckpoint int
	WatchBuffer   int // events that a watcher may be behind; 1024 if it is 0
}

// New returns an empty store. It starts no goroutine, and needs no closing. It
// panics if a number in cfg is negative.
func New(cfg Config) Store {
	if min(cfg.MaxPayload, cfg.MaxResult, cfg.MaxCheckpoint, cfg.WatchBuffer) < 0 {
		panic(fmt.Sprintf("memstore: the numbers of a Config are 0 for the default, or more: %+v", cfg))
	}
	m, err := machine.Open(&rows{all: make(map[string][]byte)}, machine.Config{
		MaxPayload: cfg.MaxPayload, MaxResult: cfg.MaxResult, MaxCheckpoint: cfg.MaxCheckpoint,
		WatchBuffer: cfg.WatchBuffer,
	})
	if err != nil {
		panic(err) // there is nothing to read that could be wrong
	}
	return Store{m}
}

// rows are those of a machine, in a map.
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

// Scan is as [machine.Rows] says. It takes time for all rows: it is called for
// an empty store only, when that is opened.
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
