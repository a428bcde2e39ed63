package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// siblings identifies tasks whose order depends only on their age.
type siblings struct {
	queue, key, kind string
	tier             stint.Priority
}

// wait is a time that a task spent Waiting.
type wait struct {
	task    *queue.Task
	from    time.Time
	to      time.Time // zero: it is still waiting
	claimed bool      // a claim ended it
	suspect bool      // the next crash makes the task dead, or may
}

// checkOrder finds tasks that started while an older sibling waited. It ignores events
// at equal times, whose order is unknown.
func checkOrder(tasks []queue.Task) error {
	waits := make(map[siblings][]wait)
	for i := range tasks {
		t := &tasks[i]
		s := siblings{t.Queue, t.Key, t.Kind, t.Tier}
		waits[s] = append(waits[s], waitsOf(t)...)
	}
	var errs []error
	for _, all := range waits {
		for _, started := range all {
			for _, other := range all {
				if started.claimed && passedOver(other, started) {
					errs = append(errs, fmt.Errorf("task %s started while the older task %s waited\n%s%s",
						started.task.ID, other.task.ID, life(*started.task), life(*other.task)))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// waitsOf returns the times that a task spent waiting since its last edit. Before the
// edit the task may have had another tier or key.
func waitsOf(t *queue.Task) (waits []wait) {
	suspect := wasSuspected(t)
	edited := 0
	for i, s := range t.Steps {
		if s.On == queue.OnEdit {
			edited = i
		}
	}
	for i, s := range t.Steps {
		switch {
		case s.To != queue.Waiting || i == 0 && cut(t) || i < edited:
		case i+1 == len(t.Steps):
			waits = append(waits, wait{task: t, from: s.At, suspect: suspect[i]})
		default:
			next := t.Steps[i+1]
			waits = append(waits, wait{t, s.At, next.At, next.On == queue.OnClaim, suspect[i]})
		}
	}
	return waits
}

// passedOver reports whether waiting was older than the task that started meanwhile. It
// ignores suspects, which may have been held.
func passedOver(waiting, started wait) bool {
	at, t := started.to, waiting.task
	late := !t.Deadline.IsZero() && !t.Deadline.After(at)
	return t.Submitted.Before(started.task.Submitted) && !late && !waiting.suspect &&
		waiting.from.Before(at) && (waiting.to.IsZero() || waiting.to.After(at))
}
