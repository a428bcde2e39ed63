package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stintgo/stint/queue"
)

// checkTask holds a task against its own steps.
func checkTask(t *queue.Task) error {
	if len(t.Steps) == 0 {
		return errors.New("it has no steps")
	}
	return errors.Join(checkPath(t), checkTokens(t), checkTries(t), checkFields(t))
}

// cut reports whether steps of the task have been dropped behind the first.
func cut(t *queue.Task) bool { return len(t.Steps) >= queue.MaxSteps }

// checkPath follows the steps through the table.
func checkPath(t *queue.Task) error {
	var errs []error
	from, at := queue.State(0), t.Submitted
	for i, s := range t.Steps {
		if gap := i == 1 && cut(t); !gap && !queue.Allowed(from, s.On, s.To) {
			errs = append(errs, fmt.Errorf("step %d: no %s leads from %s to %s", i, s.On, from, s.To))
		}
		if s.At.Before(at) {
			errs = append(errs, fmt.Errorf("step %d was before the one before it", i))
		}
		from, at = s.To, s.At
	}
	if !t.Steps[0].At.Equal(t.Submitted) || !t.Changed.Equal(at) {
		errs = append(errs, fmt.Errorf("it has Submitted %v and Changed %v; its steps say otherwise", t.Submitted, t.Changed))
	}
	if t.State != stateOf(from, t.Holds) {
		errs = append(errs, fmt.Errorf("it is %s by %v, and its steps lead to %s", t.State, t.Holds, from))
	}
	if len(t.Steps) > queue.MaxSteps {
		errs = append(errs, fmt.Errorf("it has %d steps", len(t.Steps)))
	}
	return errors.Join(errs...)
}

// stateOf is the state of a task whose steps lead to one, and that has holds.
// Those that come from others' use of limits are in no step; the others are.
func stateOf(last queue.State, holds []queue.Hold) queue.State {
	waits := slices.ContainsFunc(holds, func(h queue.Hold) bool {
		return h.Code == queue.HoldDependency || h.Code == queue.HoldGroup
	})
	switch {
	case last == queue.Held && !waits, last == queue.Waiting && waits:
		return 0 // there is a step missing
	case last == queue.Waiting && len(holds) > 0:
		return queue.Held
	default:
		return last
	}
}

// checkTokens looks at the tokens of the task's leases.
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
			errs = append(errs, fmt.Errorf("step %d ends the lease %d with token %d", i, last, s.Token))
		case from != queue.Running && s.Token != 0:
			errs = append(errs, fmt.Errorf("step %d has token %d, and was not of a running task", i, s.Token))
		}
		from = s.To
	}
	if t.State == queue.Running && t.Lease.Token != last {
		errs = append(errs, fmt.Errorf("its lease has token %d, it was claimed with %d", t.Lease.Token, last))
	}
	return errors.Join(errs...)
}

// checkTries counts failures and lost leases. Beginning anew starts the count
// again.
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
		return fmt.Errorf("it counts %d failures and %d crashes; its steps have %d and %d",
			t.Failures, t.Crashes, failures, crashes)
	}
	return nil
}

// checkFields finds what is set and should not be, or the other way round.
func checkFields(t *queue.Task) error {
	var errs []error
	running := t.State == queue.Running
	if leased := t.Lease.Worker != "" && t.Lease.Token != 0 && !t.Lease.Until.IsZero(); running && !leased {
		errs = append(errs, fmt.Errorf("it runs with the lease %+v", t.Lease))
	}
	if !running && (t.Lease != queue.Lease{} || t.Order != 0) {
		errs = append(errs, fmt.Errorf("it does not run, and has the lease %+v and an order to %s", t.Lease, t.Order))
	}
	if t.Order != 0 && t.Order != queue.OrderPause && t.Order != queue.OrderCancel {
		errs = append(errs, fmt.Errorf("its order is to %s", t.Order))
	}
	if (t.State == queue.Held) != (len(t.Holds) > 0) {
		errs = append(errs, fmt.Errorf("it is %s with the holds %v", t.State, t.Holds))
	}
	return errors.Join(errs...)
}

// life is a task's steps as text.
func life(t queue.Task) string {
	var b strings.Builder
	for _, s := range t.Steps {
		fmt.Fprintf(&b, "\t%s %s → %s %s %d %s\n", s.At.Format("15:04:05.000000000"), s.On, s.To, s.By, s.Token, s.Detail)
	}
	return b.String()
}
