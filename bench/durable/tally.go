package durable

import (
	"fmt"
	"sync/atomic"
	"time"
)

// patience is how long a tally waits before it takes a task for lost.
const patience = time.Minute

// tally counts the tasks that were handled.
type tally struct {
	seen, goal atomic.Int64
	reached    chan struct{}
}

func newTally() *tally { return &tally{reached: make(chan struct{}, 1)} }

// expect sets a new goal: n tasks more. It is called before they are submitted.
func (t *tally) expect(n int) { t.goal.Add(int64(n)) }

// one counts a task. It may be called from any goroutine.
func (t *tally) one() {
	if t.seen.Add(1) == t.goal.Load() {
		t.reached <- struct{}{}
	}
}

// wait returns when as many were seen as were expected.
func (t *tally) wait() error {
	select {
	case <-t.reached:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("handled %d of %d tasks within %s", t.seen.Load(), t.goal.Load(), patience)
	}
}

// exact returns an error if tasks were handled more than once.
func (t *tally) exact() error {
	if seen, goal := t.seen.Load(), t.goal.Load(); seen != goal {
		return fmt.Errorf("handled %d tasks, of which there were %d", seen, goal)
	}
	return nil
}
