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
	settings queue.Settings // in force
	order    *backlog.Backlog[*task]
	kinds    map[string]int        // classes in order
	seen     map[string]queue.Seen // workers that last handled a kind
	running  int
	passes   int // tasks that have ended since, and have let none start so far
	states   [queue.Cancelled + 1]int
	tiers    [stint.Tiers]int // Held and Waiting ones
	ended    queue.Ended
	groups   map[string]*group
	ready    chan struct{}
	oldest   *task // of the Waiting ones, in the order in which they became that,
	newest   *task

	rate    rate
	arrival fixed
	keyRate rate
	keys    map[string]*keyRate // those that are not as idle as a new one
}

// keyRate is the rate of one key. It is forgotten when the key could start as
// many as a new one could.
type keyRate struct {
	line    *line
	key     string
	arrival fixed
	blocked bool // in order, until a start is allowed again
	due     timer
}

func newLine(name string) *line {
	return &line{
		name:   name,
		order:  backlog.New[*task](backlog.Config{Max: math.MaxInt32}),
		kinds:  make(map[string]int),
		seen:   make(map[string]queue.Seen),
		groups: make(map[string]*group),
		keys:   make(map[string]*keyRate),
		ready:  make(chan struct{}, 1),
	}
}

// class returns the class of a kind, which is new if there was none.
func (l *line) class(kind string) int {
	class, ok := l.kinds[kind]
	if !ok {
		class = len(l.kinds)
		l.kinds[kind] = class
	}
	return class
}

// classes returns those of kinds of which there have been tasks.
func (l *line) classes(kinds []string) []int {
	var classes []int
	for _, kind := range kinds {
		if class, ok := l.kinds[kind]; ok {
			classes = append(classes, class)
		}
	}
	return classes
}

// configure puts settings into force.
func (l *line) configure(s queue.Settings) {
	l.settings = s
	limit := s.Max
	if limit == 0 {
		limit = math.MaxInt32
	}
	l.order.SetMax(limit)
	l.order.SetCaps([stint.Tiers]int{
		s.Caps.Lowest, s.Caps.Lower, s.Caps.Low, s.Caps.Normal, s.Caps.High, s.Caps.Higher, s.Caps.Highest,
	})
	l.order.SetPerKey(s.PerKey)
	l.rate, l.keyRate = newRate(s.Rate), newRate(s.KeyRate)
}

// unfinished is how many tasks count towards the queue's limit of them.
func (l *line) unfinished() int {
	n := 0
	for _, state := range queue.States() {
		if !state.Finished() {
			n += l.states[state]
		}
	}
	return n
}

// signal says that a task may have become claimable.
func (l *line) signal() {
	select {
	case l.ready <- struct{}{}:
	default: // there is a signal that nobody has taken yet
	}
}

// queued and unqueued keep the Waiting tasks in the order in which they became
// that.
func (l *line) queued(t *task, now int64) {
	t.since, t.prev, t.next = now, l.newest, nil
	if l.newest != nil {
		l.newest.next = t
	} else {
		l.oldest = t
	}
	l.newest = t
}

func (l *line) unqueued(t *task) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		l.oldest = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		l.newest = t.prev
	}
	t.prev, t.next = nil, nil
}

// held reports whether a task that is Waiting is held by limits of others' use.
func (l *line) held(t *task) bool {
	return l.settings.Paused != nil || t.key != "" && (!l.order.KeyHasRoom(t.key) || l.order.Blocked(t.key))
}
