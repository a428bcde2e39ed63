package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stintgo/stint/queue"
)

// checkTask compares a task with its own steps.
func checkTask(t *queue.Task) error {
	if len(t.Steps) == 0 {
		return errors.New("it has no steps")
	}
	return errors.Join(checkPath(t), checkTokens(t), checkTries(t), checkFields(t))
}

// cut reports whether steps after the first may have been dropped.
func cut(t *queue.Task) bool { return len(t.Steps) >= queue.MaxSteps }

// checkPath checks each step against the transition table.
func checkPath(t *queue.Task) error {
	var errs []error
	from, at := queue.State(0), t.Submitted
	for i, s := range t.Steps {
		if gap := i == 1 && cut(t); !gap && !queue.Allowed(from, s.On, s.To) {
			errs = append(errs, fmt.Errorf("step %d: %s does not lead from %s to %s", i, s.On, from, s.To))
		}
		if s.At.Before(at) {
			errs = append(errs, fmt.Errorf("step %d has an earlier time than the step before it", i))
		}
		from, at = s.To, s.At
	}
	if !t.Steps[0].At.Equal(t.Submitted) || !t.Changed.Equal(at) {
		errs = append(errs, fmt.Errorf("its Submitted %v and Changed %v differ from its steps", t.Submitted, t.Changed))
	}
	if t.State != stateOf(from, t.Holds) {
		errs = append(errs, fmt.Errorf("it is %s with the holds %v, but its steps lead to %s", t.State, t.Holds, from))
	}
	if len(t.Steps) > queue.MaxSteps {
		errs = append(errs, fmt.Errorf("it has %d steps", len(t.Steps)))
	}
	return errors.Join(errs...)
}

// stateOf returns the state of a task whose last step leads to last and that has these
// holds. Only holds by a predecessor or a group have steps; holds by limits have none.
func stateOf(last queue.State, holds []queue.Hold) queue.State {
	waits := slices.ContainsFunc(holds, func(h queue.Hold) bool {
		return h.Code == queue.HoldDependency || h.Code == queue.HoldGroup
	})
	switch {
	case last == queue.Held && !waits, last == queue.Waiting && waits:
		return 0 // a step is missing
	case last == queue.Waiting && len(holds) > 0:
		return queue.Held
	default:
		return last
	}
}

// checkTokens checks that the tokens of the task's leases grow, and that each lease is
// ended with its own.
func checkTokens(t *queue.Task) error {
	var errs []error
	var last queue.Token
	from := queue.State(0)
	for i, s := range t.Steps {
		switch {
		case i == 1 && cut(t):
			last = s.Token
		case s.On == queue.OnClaim && s.Token <= last:
			errs = append(errs, fmt.Errorf("step %d: token %d comes after %d", i, s.Token, last))
		case s.On == queue.OnClaim:
			last = s.Token
		case from == queue.Running && s.Token != last:
			errs = append(errs, fmt.Errorf("step %d ends lease %d with token %d", i, last, s.Token))
		case from != queue.Running && s.Token != 0:
			errs = append(errs, fmt.Errorf("step %d has token %d, but the task was not running", i, s.Token))
		}
		from = s.To
	}
	if t.State == queue.Running && t.Lease.Token != last {
		errs = append(errs, fmt.Errorf("its lease has token %d, but the claim has %d", t.Lease.Token, last))
	}
	return errors.Join(errs...)
}

// checkTries compares Failures and Crashes with the steps. A retry of a finished task
// resets both.
func checkTries(t *queue.Task) error {
	if cut(t) {
		return nil
	}
	failures, crashes := 0, 0
	from := queue.State(0)
	for _, s := range t.Steps {
		switch s.On {
		case queue.OnFailure:
			failures++
			crashes = 0
		case queue.OnLost:
			crashes++
		case queue.OnSnooze, queue.OnSuccess:
			crashes = 0
		case queue.OnRetry:
			if from.Finished() {
				failures, crashes = 0, 0
			}
		default:
		}
		from = s.To
	}
	if t.Failures != failures || t.Crashes != crashes {
		return fmt.Errorf("it has %d failures and %d crashes; its steps show %d and %d",
			t.Failures, t.Crashes, failures, crashes)
	}
	return nil
}

// checkFields checks that a lease, an order and holds are set only in states that allow
// them.
func checkFields(t *queue.Task) error {
	var errs []error
	running := t.State == queue.Running
	if leased := t.Lease.Worker != "" && t.Lease.Token != 0 && !t.Lease.Until.IsZero(); running && !leased {
		errs = append(errs, fmt.Errorf("it runs with the lease %+v", t.Lease))
	}
	if !running && (t.Lease != queue.Lease{} || t.Order != 0) {
		errs = append(errs, fmt.Errorf("it does not run, but has the lease %+v and the order %s", t.Lease, t.Order))
	}
	if t.Order != 0 && t.Order != queue.OrderPause && t.Order != queue.OrderCancel {
		errs = append(errs, fmt.Errorf("its order is %s", t.Order))
	}
	if (t.State == queue.Held) != (len(t.Holds) > 0) {
		errs = append(errs, fmt.Errorf("it is %s with the holds %v", t.State, t.Holds))
	}
	return errors.Join(errs...)
}

// life formats a task's steps, one per line.
func life(t queue.Task) string {
	var b strings.Builder
	for _, s := range t.Steps {
		fmt.Fprintf(&b, "\t%s %s → %s %s %d %s\n", s.At.Format("15:04:05.000000000"), s.On, s.To, s.By, s.Token, s.Detail)
	}
	return b.String()
}
