package run

import (
	"fmt"
	"sync"

	"github.com/stintgo/stint/cmd/stint/internal/halt"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/internal/proc"
)

// verdict counts the jobs that are done, and holds what the result of the run says about
// them: the first job that failed, and the exit status if the halt rule decides it. It is
// safe for concurrent use.
type verdict struct {
	rule  halt.Rule
	meter *progress.Meter

	mu     sync.Mutex
	first  string       // describes the first failed job; guarded by mu
	halted *proc.Status // nil: the halt rule does not decide the status; guarded by mu
}

// count counts a job as done, and reports whether the halt rule is met.
func (v *verdict) count(j *job, status *proc.Status, problem string) (halts bool) {
	failed := *status != proc.Status{}
	if failed {
		v.noteFirst(j, status, problem)
	}
	good, bad := v.meter.End(!failed)
	if !v.rule.Met(good, bad) {
		return false
	}
	v.noteHalt(status)
	return true
}

// noteFirst stores a description of the first job that failed.
func (v *verdict) noteFirst(j *job, status *proc.Status, problem string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.first != "" {
		return
	}
	switch {
	case problem != "":
	case status.Signal != 0:
		problem = "ended by a signal: " + status.Signal.String()
	default:
		problem = fmt.Sprintf("exit status %d", status.Exit)
	}
	text := j.text
	if text == "" {
		text = j.tag()
	}
	v.first = fmt.Sprintf("job %d (%s): %s", j.Seq, problem, brief(text))
}

// noteHalt stores the exit status of the run, if the halt rule decides it: success if the
// rule counts successes, and that of the failed job if it counts one failure. A job that
// has succeeded can see such a rule met before the failed job itself does.
func (v *verdict) noteHalt(status *proc.Status) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.halted != nil:
	case v.rule.What == halt.Success:
		v.halted = &proc.Status{}
	case v.rule.What == halt.Fail && v.rule.Count == 1 && *status != proc.Status{}:
		v.halted = status
	}
}

// get returns the description of the first job that failed, or "", and the exit status if
// the halt rule decides it, or nil.
func (v *verdict) get() (first string, halted *proc.Status) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.first, v.halted
}
