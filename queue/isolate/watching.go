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

// watch is the process that ends all groups should this one be killed, and the
// places in its table. There is one for all handlers of a program, started with
// the first group; it ends when this process does.
type watch struct {
	mu      sync.Mutex
	begun   bool
	watcher *watcher.Watcher // nil where the system has none
	env     proc.Env         // only what this adds
	free    []int            // places that are given back
	groups  map[*group]struct{}
	places  int // that there are
	seq     int // the last group's number
}

var watching watch //nolint:gochecknoglobals // one process ends all groups of a program

// cell is a place in the table.
type cell struct {
	of    *watch
	place int
	group *atomic.Int32
}

var errNoMain = errors.New("isolate: call isolate.Main first in the main function: " +
	"without it nobody ends what runs when this process is killed")

// take returns a place for a group that is about to start, and the variables by
// which its processes are known until then.
func (w *watch) take() (*cell, []string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.begin(); err != nil {
		return nil, nil, err
	}
	place := w.places + 1
	if n := len(w.free); n > 0 {
		place, w.free = w.free[n-1], w.free[:n-1]
	} else {
		w.places++
	}
	w.seq = w.seq%math.MaxInt32 + 1
	return &cell{w, place, w.watcher.Cell(place, w.seq)}, w.env.Append(nil, w.seq, place), nil
}

// begin starts the process, if that has not been done. w.mu is held, so the
// first groups wait for it together.
func (w *watch) begin() error {
	if known.Load() == nil {
		return errNoMain
	}
	if w.begun && !w.watcher.Ended() {
		return nil
	}
	// Should somebody have killed the process, another one watches over those that
	// start from now on.
	w.begun = false
	name := strconv.FormatUint(rand.Uint64(), 36) // process numbers come again, and containers have their own
	failed := make(chan error, 1)
	w.watcher = watcher.Start(watcher.Program, name, nil, func(err error) { failed <- err })
	w.watcher.Started()
	select {
	case err := <-failed:
		w.watcher.Stop()
		return fmt.Errorf("isolate: nobody would end what runs when this process is killed: %w", err)
	default:
	}
	w.env = proc.NewEnv(nil, name)
	w.begun = true
	return nil
}

// hold notes the group that has the place.
func (c *cell) hold(g *group) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.of.groups == nil {
		c.of.groups = make(map[*group]struct{})
	}
	c.of.groups[g] = struct{}{}
}

// give gives a place back whose group, if there was one, has ended.
func (c *cell) give(g *group) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.groups, g)
	c.of.free = append(c.of.free, c.place)
}

// kill kills all groups.
func (w *watch) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for g := range w.groups {
		g.claim(LimitTask, 0)
		g.kill()
	}
}
