package queue_test

import (
	"slices"
	"testing"

	"github.com/stintgo/stint/queue"
)

// Whatever happens to a task, it can end, and nothing in the table leads out of
// the states that there are.
func TestC4_TransitionsLeadSomewhere(t *testing.T) {
	into := map[queue.State]bool{}
	for _, line := range queue.Transitions() {
		for _, to := range line.To {
			into[to] = true
		}
	}
	for _, from := range queue.States() {
		if !into[from] {
			t.Errorf("nothing leads to %s", from)
		}
		if !endsFrom(from, map[queue.State]bool{}) {
			t.Errorf("no way leads from %s to the end", from)
		}
	}
}

// endsFrom reports whether a task can come from a state to be forgotten.
func endsFrom(from queue.State, seen map[queue.State]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	for _, line := range queue.Transitions() {
		if line.From == from && (len(line.To) == 0 ||
			slices.ContainsFunc(line.To, func(to queue.State) bool { return endsFrom(to, seen) })) {
			return true
		}
	}
	return false
}

// A table with two lines for one event would leave open which of them holds.
func TestC4_TransitionsAreUnique(t *testing.T) {
	type event struct {
		from queue.State
		on   queue.Trigger
	}
	seen := map[event]bool{}
	for _, line := range queue.Transitions() {
		e := event{line.From, line.On}
		if seen[e] {
			t.Errorf("two lines for %s in state %s", line.On, line.From)
		}
		seen[e] = true
		for _, to := range line.To {
			if !queue.Allowed(line.From, line.On, to) {
				t.Errorf("%s from %s to %s is in the table and not allowed", line.On, line.From, to)
			}
		}
	}
	for _, from := range queue.States() {
		if queue.Allowed(from, queue.OnClaim, queue.Running) != (from == queue.Waiting) {
			t.Errorf("a task that is %s: claiming it is allowed wrongly", from)
		}
	}
}

// Only what is finished can be forgotten, and only its worker ends a running
// task.
func TestC4_FinishedAndRunning(t *testing.T) {
	for _, line := range queue.Transitions() {
		if (line.On == queue.OnForget) != (len(line.To) == 0) || line.On == queue.OnForget && !line.From.Finished() {
			t.Errorf("%s from %s leads to %v", line.On, line.From, line.To)
		}
		if line.From == queue.Running && slices.Contains(line.To, queue.Running) {
			t.Errorf("%s leaves a task running", line.On)
		}
	}
}
