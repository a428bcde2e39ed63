package storetest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// NewNaive returns a store in memory that is written to be obviously right: it
// keeps the tasks in the order of their submission, and looks at all of them for
// whatever it has to decide. The suite is proven on it, and [Model] holds others
// against it. Its cost is quadratic in the number of its tasks.
func NewNaive(cfg Config) queue.Store { return newNaive(cfg) }

type naive struct {
	cfg Config

	mu       sync.Mutex // guards all below, and is held for the whole of a call
	closed   bool
	now      time.Time // the latest of a call; before the first one that of the rows
	submits  uint64
	endings  uint64
	tokens   queue.Token
	rows     []*row // in the order of submission
	uniques  []*row // that retention has forgotten, and whose Unique answers yet
	settings settings
	// schedules are as JSON, so that they are nobody else's.
	schedules map[string][]byte
	queues    map[string]*turns
	turns     []turn                     // of queues that the total has refused, the first one first
	listeners map[string][]chan struct{} // by queue
	workers   map[string]heard
	watchers  []*watcher
	opening   bool         // there has been no call with a time
	away      [2]time.Time // from the last change before the opening to the first call
	resumed   []*row       // whose leases begin anew with the first call
	lost      []*row       // whose losses it dates
}

// row is a task and what decides about it. Its State is the recorded one: a
// task that only others' use of limits holds is Waiting here.
type row struct {
	queue.Task
	seq      uint64
	ended    uint64 // numbers the finished ones in the order in which they ended
	orderBy  string // who gave Order,
	orderWhy string // and why
	// remote is the length of a lease that outlives the store; 0 is one that does
	// not.
	remote time.Duration
	// runAtEdited and deadlineEdited are when a command last edited RunAt and Deadline.
	runAtEdited, deadlineEdited time.Time
}

// turns is what a queue remembers besides its tasks.
type turns struct {
	starts  int
	last    map[line]int // the number of a line's last start
	arrival time.Time    // of the rate; see [naive.mayStartAt]
	keys    map[string]time.Time
	ended   queue.Ended

	turns, guarded int // of a store that it follows; see [naive.follow]
}

// line is those among which the first come goes first.
type line struct {
	tier stint.Priority
	key  string
}

type heard struct {
	queue.Worker
	at time.Time
}

var _ queue.Store = (*naive)(nil)

func newNaive(cfg Config) *naive {
	return &naive{
		cfg: cfg.withDefaults(), schedules: make(map[string][]byte),
		settings: newSettings(),
		queues:   make(map[string]*turns), listeners: make(map[string][]chan struct{}),
		workers: make(map[string]heard),
	}
}

// begin takes the lock for a call, and moves the time on.
func (n *naive) begin(now time.Time) (end func(), err error) {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, queue.ErrClosed
	}
	if n.opening && !now.IsZero() {
		n.open(now)
	}
	n.now = later(n.now, now)
	return n.mu.Unlock, nil
}

// step makes a change of state. Everything that happens to a task comes by
// here, so a change that the table does not have ends the test.
func (n *naive) step(r *row, to queue.State, s queue.Step) {
	from := r.State
	if !queue.Allowed(from, s.On, to) {
		panic(fmt.Sprintf("storetest: %s of a task that is %s does not make it %s", s.On, from, to))
	}
	s.At, s.To = n.now, to
	r.State, r.Changed = to, n.now
	if r.Steps = append(r.Steps, s); len(r.Steps) > queue.MaxSteps {
		r.Steps = slices.Delete(r.Steps, 1, 2)
	}
	if to != queue.Running {
		r.Lease, r.Order = queue.Lease{}, 0
	}
	if to.Finished() {
		n.endings++
		r.ended = n.endings
	}
	n.count(r, s)
	n.tell(queue.Event{ID: r.ID, Queue: r.Queue, Kind: r.Kind, From: from, Step: s})
}

func (n *naive) count(r *row, s queue.Step) {
	ended := &n.queue(r.Queue).ended
	switch s.On {
	case queue.OnFailure:
		ended.Failed++
	case queue.OnLost:
		ended.Lost++
	default:
	}
	switch s.To {
	case queue.Succeeded:
		ended.Succeeded++
	case queue.Dead:
		ended.Dead++
	case queue.Cancelled:
		ended.Cancelled++
	default:
	}
}

// revise holds what has come to be held, and lets go what is no longer.
func (n *naive) revise() {
	for _, r := range n.rows {
		held := len(n.waits(r)) > 0
		switch {
		case r.State == queue.Held && !held:
			n.step(r, queue.Waiting, queue.Step{On: queue.OnUnhold})
		case r.State == queue.Waiting && held:
			n.step(r, queue.Held, queue.Step{On: queue.OnHold})
		}
	}
}

// pending is the state of a task that is to start when it may.
func (n *naive) pending(r *row) queue.State {
	switch {
	case r.RunAt.After(n.now):
		return queue.Scheduled
	case len(n.waits(r)) > 0:
		return queue.Held
	default:
		return queue.Waiting
	}
}

// waits are the holds of a task that its steps tell of.
func (n *naive) waits(r *row) (holds []queue.Hold) {
	for _, id := range r.After {
		// One that is gone has succeeded, or has taken along those that waited.
		if before := n.row(id); before != nil && before.seq < r.seq && before.State != queue.Succeeded {
			holds = append(holds, queue.Hold{Code: queue.HoldDependency, What: id.String(), State: before.State})
		}
	}
	for _, id := range r.AfterAny {
		if before := n.row(id); before != nil && before.seq < r.seq && !before.State.Finished() {
			holds = append(holds, queue.Hold{Code: queue.HoldDependency, What: id.String(), State: before.State})
		}
	}
	unfinished := func(other *row) bool { return other.Batch == r.AfterBatch && !other.State.Finished() }
	if !r.AfterBatch.IsZero() && slices.ContainsFunc(n.rows, unfinished) {
		holds = append(holds, queue.Hold{Code: queue.HoldDependency, What: r.AfterBatch.String()})
	}
	if first := n.firstOfGroup(r); first != r {
		holds = append(holds, queue.Hold{Code: queue.HoldGroup, What: r.Group, State: first.State})
	}
	return holds
}

// firstOfGroup is the task of r's group that runs, or else the first of the
// unfinished ones. If there is none, or no group, it is r.
func (n *naive) firstOfGroup(r *row) *row {
	first := r
	if r.Group == "" {
		return r
	}
	for _, other := range n.rows {
		switch {
		case other.Queue != r.Queue || other.Group != r.Group || other.State.Finished():
		case other.State == queue.Running:
			return other
		case other.seq < first.seq:
			first = other
		}
	}
	return first
}

// limits are the holds of a task that come from others' use of limits.
func (n *naive) limits(r *row) (holds []queue.Hold) {
	s := n.inForce(r.Queue)
	if s.Paused != nil {
		holds = append(holds, queue.Hold{Code: queue.HoldQueuePaused, What: r.Queue})
	}
	if suspected(&r.Task) && len(n.runningSuspects(r.Queue)) > 0 {
		holds = append(holds, queue.Hold{Code: queue.HoldSuspect})
	}
	if r.Key == "" {
		return holds
	}
	if limit := n.keyLimit(r.Queue, r.Key); limit > 0 && n.running(r.Queue, &r.Key) >= limit {
		holds = append(holds, queue.Hold{Code: queue.HoldKey, What: r.Key})
	}
	if limit := n.totalOfKey(r.Key); limit > 0 && n.runningOfAll(&r.Key) >= limit {
		holds = append(holds, queue.Hold{Code: queue.HoldKeyTotal, What: r.Key})
	}
	if mayStartAt(n.keyRate(r.Queue, r.Key), n.queue(r.Queue).keys[r.Key]).After(n.now) {
		holds = append(holds, queue.Hold{Code: queue.HoldKeyRate, What: r.Key})
	}
	return holds
}

// running counts what runs of a queue, and of a key if one is given.
func (n *naive) running(name string, key *string) (count int) {
	for _, r := range n.rows {
		if r.State == queue.Running && r.Queue == name && (key == nil || r.Key == *key) {
			count++
		}
	}
	return count
}

// runningSuspects are the suspects of a queue that run.
func (n *naive) runningSuspects(name string) (ids []queue.ID) {
	for _, r := range n.rows {
		if r.State == queue.Running && r.Queue == name && suspected(&r.Task) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

func (n *naive) row(id queue.ID) *row {
	for _, r := range n.rows {
		if r.ID == id {
			return r
		}
	}
	return nil
}

func (n *naive) queue(name string) *turns {
	q := n.queues[name]
	if q == nil {
		q = &turns{last: make(map[line]int), keys: make(map[string]time.Time)}
		n.queues[name] = q
	}
	return q
}

// view is a task as callers see it, which they may do with as they like.
func (n *naive) view(r *row) queue.Task {
	t := r.Task
	t.Payload, t.Checkpoint, t.Result = slices.Clone(t.Payload), slices.Clone(t.Checkpoint), slices.Clone(t.Result)
	t.After, t.AfterAny = slices.Clone(t.After), slices.Clone(t.AfterAny)
	t.Steps, t.Labels = slices.Clone(t.Steps), maps.Clone(t.Labels)
	if t.State == queue.Held || t.State == queue.Waiting {
		if t.Holds = append(n.waits(r), n.limits(r)...); len(t.Holds) > 0 {
			t.State = queue.Held
		}
	}
	return t
}

func orDefault(name string) string {
	if name == "" {
		return queue.DefaultQueue
	}
	return name
}
