// Package halt implements the rule of --halt, which decides when a run stops early.
package halt

import (
	"fmt"
	"strconv"
	"strings"
)

// When says what happens to running jobs once a rule is met.
type When uint8

// The values of When.
const (
	Never When = iota
	Soon       // no more jobs are started
	Now        // and running jobs are ended
)

// What says which jobs a rule counts.
type What uint8

// The values of What.
const (
	Fail What = iota
	Success
	Done
)

// Rule says when to halt. The zero value never halts.
type Rule struct {
	When    When
	What    What
	Count   int // jobs, if Percent is 0
	Percent int // of the jobs that have ended, 1 … 100
}

const usage = "use never, or now or soon with a count, as in now,fail=1 or soon,done=5, " +
	"or with a share of the jobs that have ended, as in soon,fail=10%"

// Parse parses a rule in the syntax of GNU parallel: never, or when,what=amount.
func Parse(text string) (Rule, error) {
	if text == "never" || text == "" {
		return Rule{}, nil
	}
	when, rest, ok := strings.Cut(text, ",")
	what, amount, ok2 := strings.Cut(rest, "=")
	if !ok || !ok2 {
		return Rule{}, fmt.Errorf("halt rule %q: %s", text, usage)
	}
	var r Rule
	switch when {
	case "now":
		r.When = Now
	case "soon":
		r.When = Soon
	default:
		return Rule{}, fmt.Errorf("halt rule %q: %q is not now, soon or never; %s", text, when, usage)
	}
	switch what {
	case "fail":
		r.What = Fail
	case "success":
		r.What = Success
	case "done":
		r.What = Done
	default:
		return Rule{}, fmt.Errorf("halt rule %q: %q is not fail, success or done; %s", text, what, usage)
	}
	if err := r.parseAmount(amount); err != nil {
		return Rule{}, fmt.Errorf("halt rule %q: %w", text, err)
	}
	return r, nil
}

func (r *Rule) parseAmount(amount string) error {
	digits, percent := strings.CutSuffix(amount, "%")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil || n < 1 || percent && n > 100:
		return fmt.Errorf("%q is not a count from 1 or a share from 1%% to 100%%; %s", amount, usage)
	case percent && r.What == Done:
		return fmt.Errorf("all jobs that have ended are done: give a count; %s", usage)
	case percent:
		r.Percent = n
	default:
		r.Count = n
	}
	return nil
}

// Met reports whether the rule is met when that many jobs have succeeded and failed.
//
// A percentage of failed jobs is checked only when enough jobs have ended that a single
// failure is not above it: ten for 10 %. Otherwise the first job, if it failed, would be
// 100 % of all.
func (r Rule) Met(succeeded, failed int) bool {
	if r.When == Never {
		return false
	}
	ended := succeeded + failed
	counted := ended
	switch r.What {
	case Fail:
		counted = failed
	case Success:
		counted = succeeded
	case Done:
	}
	if r.Percent == 0 {
		return counted >= r.Count
	}
	return ended*r.Percent >= 100 && counted*100 >= ended*r.Percent
}
