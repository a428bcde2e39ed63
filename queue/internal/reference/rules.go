package reference

import (
	"time"

	"github.com/stintgo/stint/queue"
)

// Rules is the rules of a queue and what they depend on: the tasks, what is set, and what
// is spent of rates. It makes no calls and takes no lock: its user says what happens.
type Rules struct {
	Tasks       *Tasks
	Settings    *Settings
	Rates       *Rates
	Before      Predecessors
	Limits      Limits
	Submissions Submissions
}

// NewRules returns the rules of a queue that has no tasks.
func NewRules() *Rules {
	s := newSettings()
	return newRules(&Tasks{}, s, newRates(s))
}

func newRules(tasks *Tasks, s *Settings, rates *Rates) *Rules {
	before := Predecessors{tasks}
	return &Rules{
		Tasks: tasks, Settings: s, Rates: rates, Before: before,
		Limits: Limits{tasks, s, rates}, Submissions: Submissions{tasks, before, s},
	}
}

// Clone returns a copy that shares nothing which changes.
func (r *Rules) Clone() *Rules {
	s := r.Settings.clone()
	return newRules(r.Tasks.Clone(), s, r.Rates.clone(s))
}

// reopened returns a copy as a store finds it that is opened again: nothing is spent.
func (r *Rules) reopened() *Rules {
	s := r.Settings.clone()
	return newRules(r.Tasks.Clone(), s, newRates(s))
}

// Reopen forgets what is spent of rates, as a crash of the store does.
func (r *Rules) Reopen() { clear(r.Rates.queues); clear(r.Rates.keys) }

// Configure changes settings. Errors: ErrChanged.
func (r *Rules) Configure(now time.Time, name string, c queue.Change) (changed bool, err error) {
	return r.Rates.configure(now, name, c)
}
