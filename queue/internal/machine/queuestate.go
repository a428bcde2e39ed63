package machine

import (
	"math"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// queueState is one queue: its settings in force, the order of its Waiting tasks, its
// counts, and the state of its limits and rates. It uses no clock and no other queue. The
// caller of each method holds the lock of the machine.
type queueState struct {
	name     string
	no       uint32         // its number, which is in its tasks; from 1
	settings queue.Settings // in force
	inForce  queue.Layer    // the same, with the origin of each field; From is not changed in place
	place    place          // in the order of the total
	limits   limits         // the rates of settings, parsed

	order    *backlog.Backlog[uint32]
	kinds    map[string]int // backlog classes of the kinds so far; the class of a kind's suspects is the next number
	waiting  taskList       // Waiting tasks, in the order in which they became Waiting
	finished [2]taskList    // [0] Succeeded and Cancelled, [1] Dead, in the order in which they ended
	groups   groups
	suspects suspects
	prefetch [stint.Tiers]prefetchWindow

	running int
	turns   int // turns of the policy: one for each task that has ended, less those that starts have used
	states  [queue.Cancelled + 1]int
	tiers   [stint.Tiers]int // Held and Waiting tasks
	damaged int              // tasks in quarantine
	ended   queue.Ended
	idle    int64  // since when the queue is known to be unused; 0: it is used
	forgets uint32 // the index in queueSet.forgetting

	listeners []chan struct{} // those of queueSet for this name

	ends      recentEnds // while the queue has a limit
	lastStart queue.Token
	arrival   fixed               // the theoretical arrival time of the queue's rate
	keys      map[string]*keyRate // keys whose burst is not full
	keysPeak  int                 // of keys, for shrink.Delete
	blocked   heap[*keyRate]      // keys that their rates block, by the time of their next start
}

// limits is the rates in force of a queue and of its keys.
type limits struct {
	rate    rate
	keyRate rate
	own     keyLimits  // limits of single keys of this queue, whose rates replace those of shared and keyRate
	shared  *keyLimits // limits of single keys in each queue, whose rates replace keyRate
}

// rateOfKey returns the rate that limits the starts of a key.
func (l *limits) rateOfKey(key string) rate {
	if r, ok := l.own.rates[key]; ok {
		return r
	}
	if r, ok := l.shared.rates[key]; ok {
		return r
	}
	return l.keyRate
}

// The causes for which a key is blocked in the backlog, besides the limit of running
// tasks of the key, which the backlog checks itself.
const (
	causeRate  backlog.Cause = 1 << iota // the rate of the key in this queue
	causeTotal                           // the limit of the key in all queues together
)

func indexForgetting(q *queueState) *uint32 { return &q.forgets }

func newQueueState(name string, no uint32, shared *keyLimits, listeners []chan struct{}) *queueState {
	return &queueState{
		name:      name,
		no:        no,
		limits:    limits{shared: shared},
		order:     backlog.New[uint32](backlog.Config{Max: math.MaxInt32, SharedLimits: shared.running}),
		kinds:     make(map[string]int),
		groups:    groups{byName: make(map[string]*group)},
		keys:      make(map[string]*keyRate),
		blocked:   heap[*keyRate]{index: indexBlocked},
		listeners: listeners,
	}
}

// ofSuspects is the offset of the class of a kind's suspects from the class of its other
// tasks.
const ofSuspects = 1

// class returns the class of a kind, and adds one if there is none.
func (q *queueState) class(kind string) int {
	class, ok := q.kinds[kind]
	if !ok {
		class = len(q.kinds) * (1 + ofSuspects)
		q.kinds[kind] = class
	}
	return class
}

// forgetKinds forgets the kinds of a queue without Waiting tasks, of which none is in a class,
// if there are so many that programs probably do not use the same ones again.
func (q *queueState) forgetKinds() {
	const most = 100
	if q.waiting.n == 0 && len(q.kinds) > most {
		q.kinds = make(map[string]int)
	}
}

// classes appends the classes of those kinds that have had tasks, and the classes of
// their suspects if a suspect may start.
func (q *queueState) classes(classes []int, kinds []string) []int {
	suspects := q.suspects.waiting.Len() > 0 && !q.suspects.held()
	for _, kind := range kinds {
		class, ok := q.kinds[kind]
		if !ok {
			continue
		}
		if classes = append(classes, class); suspects {
			classes = append(classes, class+ofSuspects)
		}
	}
	return classes
}

// configure applies settings. keys are the limits of single keys of this queue alone; the
// queue keeps them, as limits.own.
func (q *queueState) configure(in queue.Layer, keys keyLimits) {
	s := in.Settings
	q.settings, q.inForce = s, in
	limit := s.Max
	if limit == 0 {
		limit = math.MaxInt32
	}
	q.order.Bounds().SetMax(limit)
	q.order.Bounds().SetCaps([stint.Tiers]int{
		s.Caps.Lowest, s.Caps.Lower, s.Caps.Low, s.Caps.Normal, s.Caps.High, s.Caps.Higher, s.Caps.Highest,
	})
	q.order.Keys().SetLimits(s.PerKey, keys.running)
	q.limits = limits{newRate(s.Rate), newRate(s.KeyRate), keys, q.limits.shared}
}

// limited reports whether the queue has a limit of running tasks, so that the end of a
// lease may let another task of the queue start.
func (q *queueState) limited() bool {
	s := &q.settings
	return s.Max > 0 || s.Caps != (stint.Caps{}) || q.order.Keys().Limited()
}

// unfinished returns how many tasks count towards the limit of pending tasks.
func (q *queueState) unfinished() int {
	n := 0
	for state, tasks := range q.states {
		if !queue.State(state).Finished() {
			n += tasks
		}
	}
	return n
}

// finishedList returns the list of finished tasks that has the tasks of a state.
func (q *queueState) finishedList(of queue.State) *taskList {
	if of == queue.Dead {
		return &q.finished[1]
	}
	return &q.finished[0]
}

// held reports whether a pause, a limit of its key or another suspect holds a Waiting
// task.
func (q *queueState) held(t *task) bool {
	return q.settings.Paused != nil || t.entry.Aside() || q.suspects.held() && t.isSuspect()
}

// nextKey returns the next time at which the rate of a blocked key, and that of the
// queue, allow a task of these classes to start; zero if no such task waits. If more
// than 64 keys are blocked the time may be too early, because nextKey does not look at
// all of them.
func (q *queueState) nextKey(classes []int) (next time.Time) {
	const most = 64
	for _, k := range q.blocked.all[:min(most, len(q.blocked.all))] {
		if q.order.Keys().QueuedIn(k.of.key, classes) && (next.IsZero() || timeOf(k.rank).Before(next)) {
			next = timeOf(k.rank)
		}
	}
	if len(q.blocked.all) > most { // then the earliest of all, which is not later
		next = timeOf(q.blocked.all[0].rank)
	}
	if next.IsZero() || !q.limits.rate.limited() {
		return next
	}
	return timeOf(max(unix(next), q.limits.rate.from(q.arrival)))
}

// rateOf returns when the rate of a key allows a start again; 0 if it allows one now.
func (q *queueState) rateOf(key string) int64 {
	if k := q.keys[key]; k != nil && k.blocked > 0 {
		return q.blocked.all[k.blocked-1].rank
	}
	return 0
}

// The retention of finished tasks by default.
const (
	keepAge     = 24 * time.Hour
	keepDeadAge = 30 * 24 * time.Hour
	keepCount   = 100_000
)

// keepReopened is how long after the first call tasks are kept whose age ended while
// the store was closed. If the clock is ahead, the store was closed for a shorter time
// than it seems, and an operator can correct the clock before these tasks are
// forgotten.
const keepReopened = time.Hour

// retention returns the retention in force of tasks that have finished in a state, with
// the defaults.
func (q *queueState) retention(of queue.State) queue.Retention {
	r, age := q.settings.Keep, keepAge
	if of == queue.Dead {
		r, age = q.settings.KeepDead, keepDeadAge
	}
	if r.Age == 0 {
		r.Age = age
	}
	if r.Count == 0 {
		r.Count = keepCount
	}
	return r
}

// signal wakes the listeners, because a task may have become claimable. It is called for
// each task that is submitted or released, so it uses no map and does not block.
func (q *queueState) signal() {
	for _, ready := range q.listeners {
		select {
		case ready <- struct{}{}:
		default: // a signal is pending
		}
	}
}

// countStep counts a transition in ended, if it is a failure, a lost lease or an end.
func (q *queueState) countStep(row *record.Row, on queue.Trigger) {
	ended := &q.ended
	switch on {
	case queue.OnFailure:
		ended.Failed++
	case queue.OnLost:
		ended.Lost++
	default:
	}
	switch row.State {
	case queue.Succeeded:
		ended.Succeeded++
	case queue.Dead:
		ended.Dead++
	case queue.Cancelled:
		ended.Cancelled++
	default:
	}
}
