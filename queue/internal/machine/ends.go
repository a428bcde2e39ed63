package machine

import (
	"time"

	"github.com/stintgo/stint/queue"
)

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
func (l *line) keep(of queue.State) queue.Retention {
	r, age := l.settings.Keep, keepAge
	if of == queue.Dead {
		r, age = l.settings.KeepDead, keepDeadAge
	}
	if r.Age == 0 {
		r.Age = age
	}
	if r.Count == 0 {
		r.Count = keepCount
	}
	return r
}
