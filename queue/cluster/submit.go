package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
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
	send     func(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error)
	patience time.Duration // of send; a caller that has waited for as long has the error of a call that was not answered

	mu    sync.Mutex // guards the fields below
	sent  int        // calls that are under way
	queue []*shared  // calls that wait, the oldest first
}

// shared is a call for the tasks of several callers.
type shared struct {
	callers []*sharer
	tasks   int // of all callers
	bytes   int
	now     time.Time // of its first caller
	begun   time.Time // when that came
}

// sharer is a caller of a shared call.
type sharer struct {
	tasks []queue.NewTask
	bytes int
	begun time.Time // when it came

	done     chan struct{} // closed when the fields below are set
	receipts []queue.Receipt
	err      error
}

// submit submits tasks, at once or with those of others.
func (s *submits) submit(
	ctx context.Context, now time.Time, tasks []queue.NewTask,
) (receipts []queue.Receipt, err error) {
	s.mu.Lock()
	if s.sent >= submitsAtOnce {
		s.mu.Unlock()
		tasks = ownTasks(tasks) // without the lock, as they may be many
		s.mu.Lock()
	}
	if s.sent < submitsAtOnce {
		s.sent++
		s.mu.Unlock()
		defer func() { s.ended(err) }() //nolint:contextcheck // the next call is one of other callers
		return s.send(ctx, now, tasks)
	}
	c := s.join(now, tasks)
	s.mu.Unlock()
	select {
	case <-c.done:
		return c.receipts, c.err
	case <-ctx.Done():
		s.leave(c)
		return nil, context.Cause(ctx)
	}
}

// leave removes a caller from the call that it shares, if that has not been sent.
func (s *submits) leave(one *sharer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(one)
}

// due returns the callers of calls that have not been sent, as far as their own patience is over. The lock
// is held.
func (s *submits) due() (due []*sharer) {
	now := clock.Now()
	for _, c := range s.queue {
		for _, one := range c.callers {
			if now.Sub(one.begun) >= s.patience {
				due = append(due, one)
			}
		}
	}
	return due
}

// remove removes a caller from the call that it shares, if that has not been sent. The lock is held.
func (s *submits) remove(one *sharer) {
	for i, c := range s.queue {
		at := slices.Index(c.callers, one)
		if at < 0 {
			continue
		}
		c.callers, c.tasks, c.bytes = slices.Delete(c.callers, at, at+1), c.tasks-len(one.tasks), c.bytes-one.bytes
		if len(c.callers) == 0 {
			s.queue = slices.Delete(s.queue, i, i+1)
		}
		return
	}
}

// join adds a caller to the last call that waits. The caller of join holds the lock.
func (s *submits) join(now time.Time, tasks []queue.NewTask) *sharer {
	var c *shared
	bytes, begun := 0, clock.Now()
	for i := range tasks {
		bytes += len(tasks[i].Payload)
	}
	if last := len(s.queue) - 1; last >= 0 {
		c = s.queue[last]
	}
	if c == nil || c.tasks+len(tasks) > sharedTasks || c.bytes+bytes > sharedBytes {
		c = &shared{now: now, begun: begun}
		s.queue = append(s.queue, c)
	}
	added := &sharer{tasks: tasks, bytes: bytes, begun: begun, done: make(chan struct{})}
	c.callers, c.tasks, c.bytes = append(c.callers, added), c.tasks+len(tasks), c.bytes+bytes
	return added
}

// ownTasks copies tasks: their caller owns them, and may leave before they have been sent.
func ownTasks(tasks []queue.NewTask) []queue.NewTask {
	own := slices.Clone(tasks)
	for i := range own {
		own[i].Spec = machine.CloneSpec(&own[i].Spec)
	}
	return own
}

// ended ends a call, and begins the next one that waits. If the call was not answered, callers that
// have waited for as long as it may take have its error: they would wait many times as long.
func (s *submits) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, queue.ErrUnavailable) {
		for _, one := range s.due() {
			s.remove(one)
			answerAll([]*sharer{one}, nil, err)
		}
	}
	if len(s.queue) == 0 {
		s.sent--
		return
	}
	c := s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	go func() { s.ended(s.sendFor(c, c.callers)) }()
}

// sendFor sends the tasks of some callers of c in one call. A call is accepted as a whole, so the
// task of one of them may be why it is refused: then each half of them has a call, one after the
// other, and so on. A call for each, all at once, would come just when a queue is full. sendFor
// returns the error of the last call.
func (s *submits) sendFor(c *shared, callers []*sharer) error {
	var tasks []queue.NewTask
	for _, one := range callers {
		tasks = append(tasks, one.tasks...)
	}
	// The callers end their waits by themselves, and the end of the node ends the call.
	// The leader takes the age of a call for a difference of the clocks, so its time is that of now.
	receipts, err := s.send(context.Background(), c.now.Add(clock.Now().Sub(c.begun)), tasks)
	if err != nil && len(callers) > 1 && !errors.Is(err, queue.ErrUnavailable) && !errors.Is(err, queue.ErrClosed) {
		half := len(callers) / 2
		_ = s.sendFor(c, callers[:half]) // their callers have it
		return s.sendFor(c, callers[half:])
	}
	answerAll(callers, receipts, err)
	return err
}

// answerAll answers the callers of a call.
func answerAll(callers []*sharer, receipts []queue.Receipt, err error) {
	for _, one := range callers {
		if one.err = err; err == nil {
			one.receipts, receipts = slices.Clip(receipts[:len(one.tasks)]), receipts[len(one.tasks):]
		}
		close(one.done)
	}
}
