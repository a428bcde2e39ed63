package machine

import (
	"math"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/queue"
)

// line is one queue.
type line struct {
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
	ahead    [stint.Tiers]lookahead
	waiting  roll    // tasks, in the order in which they became that
	finished [2]roll // those that succeeded or were cancelled, and the dead ones, in the order in which they ended
	groups   map[string]*group

	listeners []chan struct{} // as the machine has them

	suspects    followers // that are Waiting
	suspectsRun int       // at most one does
	suspectEnd  uint64    // the journal's mark of the end of the last one's lease

	lastStart queue.Token // of the last lease
	arrival   fixed
	keys      map[string]*keyRate        // those that are not as idle as a new one
	peaks     struct{ keys, groups int } // of the maps, as shrink.Delete has them
	blocked   heap[*keyRate]             // of them, by when they are no more
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

func newLine(name string, no uint32, listeners []chan struct{}) *line {
	return &line{
		name:      name,
		no:        no,
		order:     backlog.New[uint32](backlog.Config{Max: math.MaxInt32}),
		kinds:     make(map[string]int),
		groups:    make(map[string]*group),
		keys:      make(map[string]*keyRate),
		blocked:   heap[*keyRate]{place: placeBlocked},
		listeners: listeners,
	}
}

// ofSuspects is by how much the class of a kind's suspects is above that of its
// other tasks.
const ofSuspects = 1

// class returns the class of a kind, which is new if there was none.
func (l *line) class(kind string) int {
	class, ok := l.kinds[kind]
	if !ok {
		class = len(l.kinds) * (1 + ofSuspects)
		l.kinds[kind] = class
	}
	return class
}

// classes appends those of kinds of which there have been tasks, and those of
// their suspects if one may start.
func (l *line) classes(classes []int, kinds []string) []int {
	suspects := l.suspects.Len() > 0 && !l.holdsSuspects()
	for _, kind := range kinds {
		class, ok := l.kinds[kind]
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
func (l *line) configure(in queue.Layer, keys keyLimits) {
	s := in.Settings
	l.settings, l.inForce = s, in
	limit := s.Max
	if limit == 0 {
		limit = math.MaxInt32
	}
	l.order.SetMax(limit)
	l.order.SetCaps([stint.Tiers]int{
		s.Caps.Lowest, s.Caps.Lower, s.Caps.Low, s.Caps.Normal, s.Caps.High, s.Caps.Higher, s.Caps.Highest,
	})
	l.order.SetKeyLimits(s.PerKey, keys.running)
	l.limits = limits{newRate(s.Rate), newRate(s.KeyRate), keys.rates}
}

// limited reports whether the end of a lease may be what lets another task start.
func (l *line) limited() bool {
	s := &l.settings
	return s.Max > 0 || s.Caps != (stint.Caps{}) || l.order.LimitsKeys()
}

// unfinished is how many tasks count towards the queue's limit of them.
func (l *line) unfinished() int {
	n := 0
	for state, tasks := range l.states {
		if !queue.State(state).Finished() {
			n += tasks
		}
	}
	return n
}

// ends are the tasks that are finished and kept as long as those of a state.
func (l *line) ends(of queue.State) *roll {
	if of == queue.Dead {
		return &l.finished[1]
	}
	return &l.finished[0]
}

// held reports whether a task that is Waiting is held by limits of others' use.
func (l *line) held(t *task) bool {
	return l.settings.Paused != nil || t.place.Aside() || l.holdsSuspects() && t.isSuspect()
}
