//go:build unix

package isolate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/internal/watcher"
)

// groupTable is the groups of this process, and the watcher process that kills them if
// this process is killed. A program has one table for all handlers. The watcher starts
// with the first group and ends with this process.
type groupTable struct {
	mu      sync.Mutex // guards all fields
	begun   bool
	watcher *watcher.Watcher // nil where the system has none
	env     proc.Env         // only the variables that identify the groups
	free    []int            // released slots
	groups  map[*group]struct{}
	slots   int // slots in use or free
	seq     int // the sequence number of the last group
}

var groups groupTable //nolint:gochecknoglobals // one watcher for all groups of a program

// cell is a slot of the watcher's table.
type cell struct {
	table *groupTable
	slot  int
	group *atomic.Int32
}

var errNoMain = errors.New("isolate: call isolate.Main first in the main function: " +
	"without it commands would keep running when this process is killed")

// reserve returns a cell for a group that is about to start, and the environment
// variables by which the watcher finds its processes until the cell holds the group. It
// starts the watcher if necessary.
func (w *groupTable) reserve() (*cell, []string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.beginLocked(); err != nil {
		return nil, nil, err
	}
	slot := w.slots + 1
	if n := len(w.free); n > 0 {
		slot, w.free = w.free[n-1], w.free[:n-1]
	} else {
		w.slots++
	}
	w.seq = w.seq%math.MaxInt32 + 1
	return &cell{w, slot, w.watcher.Cell(slot, w.seq)}, w.env.Append(nil, w.seq, slot), nil
}

// beginLocked starts the watcher if it does not run. The caller must hold w.mu, so that
// concurrent first groups wait for one start.
func (w *groupTable) beginLocked() error {
	if known.Load() == nil {
		return errNoMain
	}
	if w.begun && !w.watcher.Ended() {
		return nil
	}
	// If the watcher was killed, a new one watches the groups that start from now on.
	w.begun = false
	name := strconv.FormatUint(rand.Uint64(), 36) // not the PID: PIDs are reused, and differ between containers
	failed := make(chan error, 1)
	w.watcher = watcher.Start(watcher.Program, name, nil, func(err error) { failed <- err })
	w.watcher.Started()
	select {
	case err := <-failed:
		w.watcher.Stop()
		return fmt.Errorf("isolate: start the watcher, which ends commands if this process is killed: %w", err)
	default:
	}
	w.env = proc.NewEnv(nil, name)
	w.begun = true
	return nil
}

// register adds the group of the cell to the table.
func (c *cell) register(g *group) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if c.table.groups == nil {
		c.table.groups = make(map[*group]struct{})
	}
	c.table.groups[g] = struct{}{}
}

// release removes g, which has ended, and frees the slot. g is nil if the start failed.
func (c *cell) release(g *group) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	delete(c.table.groups, g)
	c.table.free = append(c.table.free, c.slot)
}

// kill sends SIGKILL to all groups.
func (w *groupTable) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for g := range w.groups {
		g.claim(LimitTask, 0)
		g.kill()
	}
}
