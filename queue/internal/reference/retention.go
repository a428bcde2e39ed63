package reference

import (
	"cmp"
	"time"

	"github.com/stintgo/stint/queue"
)

// How long finished tasks are kept if nothing is set.
const (
	keepAge     = 24 * time.Hour
	keepDeadAge = 30 * 24 * time.Hour
	keepCount   = 100_000
	// keepReopened is how much longer tasks are kept whose age passed while the store was
	// closed.
	keepReopened = time.Hour
)

// retention decides how long finished tasks are kept.
type retention struct {
	*Rules
	closed [2]time.Time // from the last change before the store was opened to the first call
}

// until returns when a finished task is forgotten: at once, if enough tasks have ended
// after it; zero, if unfinished tasks need it.
func (r *retention) until(t *Task) time.Time {
	if r.Before.needed(t) {
		return time.Time{}
	}
	s := r.Settings.InForce(t.Queue)
	keep, age := s.Keep, keepAge
	if t.State == queue.Dead {
		keep, age = s.KeepDead, keepDeadAge
	}
	after := 0
	for _, other := range r.Tasks.all {
		if other.Queue == t.Queue && other.State.Finished() && other.ended > t.ended &&
			(other.State == queue.Dead) == (t.State == queue.Dead) {
			after++
		}
	}
	if after >= cmp.Or(keep.Count, keepCount) {
		return t.Changed
	}
	at := t.Changed.Add(cmp.Or(keep.Age, age))
	if at.After(r.closed[0]) && !at.After(r.closed[1]) {
		at = r.closed[1].Add(keepReopened)
	}
	return at
}
