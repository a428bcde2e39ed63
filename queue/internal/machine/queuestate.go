package machine

import (
	"math"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// queueState is one queue: its settings in force, the order of its waiting tasks, its
// counts, and what its limits remember. It reads no clock and knows no other queue. The
// caller of each method holds the lock of the machine.
type queueState struct {
	name     string
	no       uint32         // its number, which is in its tasks; from 1
	settings queue.Settings // in force
	inForce  queue.Layer    // the same, with the origin of each field; From is not changed in place
	place    place          // in the order of the total
	limits   limits         // the rates of settings, and the limits of single keys

	order    *backlog.Backlog[uint32]
	kinds    map[string]int // classes in order; the class of a kind's suspects comes next
	waiting  taskList       // in the order in which they became Waiting
	finished [2]taskList    // Succeeded and Cancelled ones, and Dead ones, in the order in which they ended
	groups   groups
	suspects suspects
	prefetch [stint.Tiers]prefetchWindow

	running int
	passes  int // tasks that have ended since the last start, and have let none start so far
	states  [queue.Cancelled + 1]int
	tiers   [stint.Tiers]int // Held and Waiting ones
	damaged int              // tasks in quarantine
	ended   queue.Ended
	idle    int64 // since when the queue is known to be of no use; 0: it is of use

	listeners []chan struct{} // as queueSet has them

	roomEnd   uint64 // the journal's mark of the last end of a lease that a crash could bring back beside another
	lastStart queue.Token
	arrival   fixed               // of the rate of the queue
	keys      map[string]*keyRate // keys that have spent some of their rate
	keysPeak  int                 // as shrink.Delete has it
	blocked   heap[*keyRate]      // keys that are set aside for their rates, by when they may start again
}

// limits is the rates of a queue in the form that starts are compared with.
type limits struct {
	rate     rate
	keyRate  rate
	ownRates map[string]rate // of single keys, which have them instead of keyRate
}

// rateOfKey returns the rate that limits the starts of a key.
func (l *limits) rateOfKey(key string) rate {
	if r, ok := l.ownRates[key]; ok {
		return r
	}
	return l.keyRate
}

// The causes for which a key is set aside in the order of a queue, besides the limit
// that the order knows.
const (
	causeRate  backlog.Cause = 1 << iota // of the key in this queue
	causeTotal                           // of the key in all queues together
)

func newQueueState(name string, no uint32, listeners []chan struct{}) *queueState {
	return &queueState{
		name:      name,
		no:        no,
		order:     backlog.New[uint32](backlog.Config{Max: math.MaxInt32}),
		kinds:     make(map[string]int),
		groups:    groups{byName: make(map[string]*group)},
		keys:      make(map[string]*keyRate),
		blocked:   heap[*keyRate]{place: placeBlocked},
		listeners: listeners,
	}
}

// ofSuspects is by how much the class of a kind's suspects is above that of its
// other tasks.
const ofSuspects = 1

// class returns the class of a kind, which is new if there was none.
func (q *queueState) class(kind string) int {
	class, ok := q.kinds[kind]
	if !ok {
		class = len(q.kinds) * (1 + ofSuspects)
		q.kinds[kind] = class
	}
	return class
}

// classes appends the classes of kinds of which there have been tasks, and those of their
// suspects if a suspect may start.
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

// configure puts settings into force.
func (q *queueState) configure(in queue.Layer, keys keyLimits) {
	s := in.Settings
	q.settings, q.inForce = s, in
	limit := s.Max
	if limit == 0 {
		limit = math.MaxInt32
	}
	q.order.SetMax(limit)
	q.order.SetCaps([stint.Tiers]int{
		s.Caps.Lowest, s.Caps.Lower, s.Caps.Low, s.Caps.Normal, s.Caps.High, s.Caps.Higher, s.Caps.Highest,
	})
	q.order.Keys().SetLimits(s.PerKey, keys.running)
	q.limits = limits{newRate(s.Rate), newRate(s.KeyRate), keys.rates}
}

// limited reports whether the end of a lease may be what lets another task of the queue
// start.
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

// ends returns the list of finished tasks that retention keeps as long as those of a
// state.
func (q *queueState) ends(of queue.State) *taskList {
	if of == queue.Dead {
		return &q.finished[1]
	}
	return &q.finished[0]
}

// held reports whether limits hold a task that is Waiting, or a pause does.
func (q *queueState) held(t *task) bool {
	return q.settings.Paused != nil || t.place.Aside() || q.suspects.held() && t.isSuspect()
}

// nextKey returns when the rate of a key, and that of the queue, next allow a start for
// which a task of these classes waits; zero if there is none. If very many keys wait for
// their rates the time may be too early, because nextKey does not look at all of them.
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

// rateOf returns when the rate of a key allows a start again; 0 if it does now.
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

// keepReopened is how much longer tasks are kept whose age has passed while the store was
// closed. If the clock is ahead, the store was not closed for as long as it says, and
// there is time to set the clock right before they are forgotten.
const keepReopened = time.Hour

// keep returns what is set for the retention of tasks that have finished in a state, with
// the defaults.
func (q *queueState) keep(of queue.State) queue.Retention {
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

// signal wakes the listeners, because a task may have become claimable. It is called with
// most changes of a task, so it looks nothing up, and does not block.
func (q *queueState) signal() {
	for _, ready := range q.listeners {
		select {
		case ready <- struct{}{}:
		default: // a signal is pending
		}
	}
}

// count counts failures, lost leases and ends.
func (q *queueState) count(row *record.Row, on queue.Trigger) {
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
