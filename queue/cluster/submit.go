package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

const (
	// submitsAtOnce is how many calls of Submit a follower sends at once. Callers that come
	// meanwhile share the next one.
	submitsAtOnce = 2
	// sharedTasks and sharedBytes limit the tasks of a shared call, and their payloads.
	sharedTasks = queue.MaxSubmit
	sharedBytes = 1 << 20
)

// submits are the calls of Submit that a follower sends to the leader. A call by HTTP takes
// much longer than the decision about a task, so calls that have to wait are joined.
type submits struct {
	send func(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error)

	mu    sync.Mutex // guards the fields below
	sent  int        // calls that are under way
	queue []*shared  // calls that wait, the oldest first
}

// shared is a call for the tasks of several callers.
type shared struct {
	tasks []queue.NewTask
	bytes int
	now   time.Time // of its first caller
	begun time.Time // when that came

	done     chan struct{} // closed when the fields below are set
	receipts []queue.Receipt
	err      error
}

// submit submits tasks, at once or with those of others.
func (s *submits) submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	s.mu.Lock()
	if s.sent < submitsAtOnce {
		s.sent++
		s.mu.Unlock()
		defer s.ended() //nolint:contextcheck // the next call is one of other callers
		return s.send(ctx, now, tasks)
	}
	begun := clock.Now()
	c, from := s.join(now, tasks)
	s.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	switch {
	case c.err == nil:
		return slices.Clip(c.receipts[from : from+len(tasks)]), nil
	case len(c.tasks) == len(tasks) || errors.Is(c.err, queue.ErrUnavailable) || errors.Is(c.err, queue.ErrClosed):
		return nil, c.err
	}
	// A call is accepted as a whole, and others have caused the error.
	return s.send(ctx, now.Add(clock.Now().Sub(begun)), tasks)
}

// join adds tasks to the last call that waits, from an index on. The caller holds the lock.
func (s *submits) join(now time.Time, tasks []queue.NewTask) (c *shared, from int) {
	bytes := 0
	for i := range tasks {
		bytes += len(tasks[i].Payload)
	}
	if last := len(s.queue) - 1; last >= 0 {
		c = s.queue[last]
	}
	if c == nil || len(c.tasks)+len(tasks) > sharedTasks || c.bytes+bytes > sharedBytes {
		c = &shared{now: now, begun: clock.Now(), done: make(chan struct{})}
		s.queue = append(s.queue, c)
	}
	from = len(c.tasks)
	c.tasks, c.bytes = append(c.tasks, tasks...), c.bytes+bytes
	return c, from
}

// ended ends a call, and begins the next one that waits.
func (s *submits) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.sent--
		return
	}
	c := s.queue[0]
	s.queue = s.queue[1:]
	go func() {
		defer s.ended()
		defer close(c.done)
		// The callers end their waits by themselves, and the end of the node ends the call.
		// The leader takes the age of a call for a difference of the clocks, so its time is that of now.
		c.receipts, c.err = s.send(context.Background(), c.now.Add(clock.Now().Sub(c.begun)), c.tasks)
	}()
}
