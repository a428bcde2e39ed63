package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/stintgo/stint/queue"
)

// suspected reports whether a task has crashed and the next crash makes it dead.
func suspected(t *queue.Task) bool { return lastChance(t, t.Crashes) }

// lastChance is suspected for a number of crashes in a row.
func lastChance(t *queue.Task, crashes int) bool {
	return crashes > 0 && crashes+1 == cmp.Or(t.MaxCrashes, attempts)
}

// checkSuspects finds suspects of a queue that run at the same time, suspects that
// should be held by a running one and are not, and tasks that are held without cause.
func checkSuspects(tasks []queue.Task) error {
	var errs []error
	running := make(map[string]queue.ID)
	for _, t := range tasks {
		if t.State != queue.Running || !suspected(&t) {
			continue
		}
		if other, two := running[t.Queue]; two {
			errs = append(errs, fmt.Errorf("tasks %s and %s run at the same time, and both are suspects", other, t.ID))
		}
		running[t.Queue] = t.ID
	}
	for _, t := range tasks {
		if t.State != queue.Waiting && t.State != queue.Held {
			continue
		}
		_, busy := running[t.Queue]
		held := slices.ContainsFunc(t.Holds, func(h queue.Hold) bool { return h.Code == queue.HoldSuspect })
		if want := busy && suspected(&t); held != want {
			errs = append(errs, fmt.Errorf("task %s has crashed %d times; it is held as a suspect: %t, want %t",
				t.ID, t.Crashes, held, want))
		}
	}
	return errors.Join(errs...)
}

// wasSuspected reports for each step of a task whether it left the task a suspect. It is
// true as well if steps that would show it have been dropped.
func wasSuspected(t *queue.Task) []bool {
	all := make([]bool, len(t.Steps))
	crashes, unknown, from := 0, false, queue.State(0)
	for i, s := range t.Steps {
		unknown = unknown || i == 1 && cut(t)
		switch s.On {
		case queue.OnLost:
			crashes++
		case queue.OnFailure, queue.OnSnooze:
			crashes, unknown = 0, false
		case queue.OnRetry:
			if from.Finished() {
				crashes, unknown = 0, false
			}
		default:
		}
		all[i], from = unknown || lastChance(t, crashes), s.To
	}
	return all
}
