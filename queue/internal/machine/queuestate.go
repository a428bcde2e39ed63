package machine

import (
	"math"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// line is one queue.
type queueState struct {
	name     string
	no       uint32         // by which its tasks know it; from 1
	settings queue.Settings // in force
	inForce  queue.Layer    // the same, with who set it; From is not changed in place
	place    place          // in the order of the total
	limits   limits         // the rates of these, and the limits of single keys
	order    *backlog.Backlog[uint32]
	kinds    map[string]int // classes in order; those of suspects come next
	running  int
	roomEnd  uint64 // the journal's mark of the last end of a lease that a crash could bring back beside another
	passes   int    // tasks that have ended since, and have let none start so far
	states   [queue.Cancelled + 1]int
	tiers    [stint.Tiers]int // Held and Waiting ones
	damaged  int              // tasks that are set aside because they cannot be read
	idle     int64            // since when it is known to be of no use; 0: it is of use. See idle.go
	ended    queue.Ended
	prefetch [stint.Tiers]prefetchWindow
	waiting  taskList    // tasks, in the order in which they became that
	finished [2]taskList // those that succeeded or were cancelled, and the dead ones, in the order in which they ended
	groups   groups

	listeners []chan struct{} // as the machine has them

	suspects suspects

	lastStart queue.Token // of the last lease
	arrival   fixed
	keys      map[string]*keyRate // those that are not as idle as a new one
	keysPeak  int                 // as shrink.Delete has it
	blocked   heap[*keyRate]      // of them, by when they are no more
}

// limits are the limits of a queue in the form in which starts are held against them.
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

// classes appends those of kinds of which there have been tasks, and those of
// their suspects if one may start.
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
	q.order.SetKeyLimits(s.PerKey, keys.running)
	q.limits = limits{newRate(s.Rate), newRate(s.KeyRate), keys.rates}
}

// limited reports whether the end of a lease may be what lets another task start.
func (q *queueState) limited() bool {
	s := &q.settings
	return s.Max > 0 || s.Caps != (stint.Caps{}) || q.order.LimitsKeys()
}

// unfinished is how many tasks count towards the queue's limit of them.
func (q *queueState) unfinished() int {
	n := 0
	for state, tasks := range q.states {
		if !queue.State(state).Finished() {
			n += tasks
		}
	}
	return n
}

// ends are the tasks that are finished and kept as long as those of a state.
func (q *queueState) ends(of queue.State) *taskList {
	if of == queue.Dead {
		return &q.finished[1]
	}
	return &q.finished[0]
}

// held reports whether a task that is Waiting is held by limits of others' use.
func (q *queueState) held(t *task) bool {
	return q.settings.Paused != nil || t.place.Aside() || q.suspects.held() && t.isSuspect()
}

// nextKey returns when the rate of a key allows a start again that tasks of
// these classes wait for, and that of the queue does; zero if there is none. If very many keys wait for their
// rates it may be too early, because it does not look at all of them.
func (q *queueState) nextKey(classes []int) (next time.Time) {
	const most = 64
	for _, k := range q.blocked.all[:min(most, len(q.blocked.all))] {
		if q.order.Waits(k.of.key, classes) && (next.IsZero() || timeOf(k.rank).Before(next)) {
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

// What is kept of finished tasks if nothing is set.
const (
	keepAge     = 24 * time.Hour
	keepDeadAge = 30 * 24 * time.Hour
	keepCount   = 100_000
)

// keepReopened is how much longer tasks are kept whose age has passed while the store
// was closed. If it was not closed for as long as its clock says, because that is ahead,
// there is time to set the clock right before they are forgotten.
const keepReopened = time.Hour

// keep is what is set for tasks that have finished in a state, with the defaults.
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

// signal says that a task may have become claimable. It is called with most changes
// of a task, so it looks nothing up, and waits for nobody.
func (q *queueState) signal() {
	for _, ready := range q.listeners {
		select {
		case ready <- struct{}{}:
		default: // there is a signal that nobody has taken yet
		}
	}
}

// count counts what has ended.
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
