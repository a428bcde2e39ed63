package reference

import (
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// reservations is the queues that were refused a start because of the total of all queues,
// the first one first, and the free slots that are reserved for them.
type reservations struct {
	*Rules
	waiting []reservation
}

type reservation struct {
	queue string
	until time.Time // end of the reservation of a slot; zero if none is reserved
}

// free returns how many more tasks the total allows, also below 0.
func (r *reservations) free() int {
	return r.Settings.total() - len(r.Tasks.running("", nil))
}

// reserve reserves the free slots for the queues that were refused first, each for a
// second.
func (r *reservations) reserve(now time.Time) {
	idle := func(name string) bool {
		return !slices.ContainsFunc(r.Tasks.all, func(t *Task) bool {
			return t.Queue == name && t.State == queue.Waiting && len(r.Limits.holds(now, t)) == 0
		})
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(w reservation) bool {
		return idle(w.queue) || !w.until.IsZero() && !w.until.After(now)
	})
	for i := range r.waiting {
		if i < r.free() && r.waiting[i].until.IsZero() {
			r.waiting[i].until = now.Add(time.Second)
		}
	}
}

// allows reports whether the total lets a queue start a task: slots are free that are not
// reserved for queues which were refused earlier.
func (r *reservations) allows(name string) bool {
	if r.Settings.total() == 0 {
		return true
	}
	before := slices.IndexFunc(r.waiting, func(w reservation) bool { return w.queue == name })
	if before < 0 {
		before = len(r.waiting)
	}
	return r.free() > before
}

// refuse adds the queue of a claim that gets no more tasks because of the total, if it has
// tasks to start. It returns when to come back if all free slots are reserved for others.
func (r *reservations) refuse(now time.Time, c queue.Claim) (next time.Time) {
	switch free := r.free(); {
	case r.allows(c.Queue) || len(r.Limits.ready(now, c)) == 0:
		r.end(c.Queue)
		r.reserve(now)
		return time.Time{}
	case !slices.ContainsFunc(r.waiting, func(w reservation) bool { return w.queue == c.Queue }):
		r.waiting = append(r.waiting, reservation{queue: c.Queue})
		fallthrough
	default:
		if free > 0 {
			next = r.waiting[0].until
		}
		return next
	}
}

// end ends the reservation of a queue.
func (r *reservations) end(name string) {
	r.waiting = slices.DeleteFunc(r.waiting, func(w reservation) bool { return w.queue == name })
}

// again distributes the slots again, because a change of settings may have freed some.
func (r *reservations) again(now time.Time) {
	for i := range r.waiting {
		r.waiting[i].until = time.Time{}
	}
	r.reserve(now)
}

// due returns when the first reservation ends; zero if there is none.
func (r *reservations) due() (at time.Time) {
	if len(r.waiting) > 0 {
		at = r.waiting[0].until
	}
	return at
}
