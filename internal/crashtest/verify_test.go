//go:build linux

package crashtest_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

// evidence has the store's tasks and the two records.
type evidence struct {
	tasks []queue.Task            // of the store
	plans map[queue.ID]plan       // of accepted tasks
	runs  map[queue.ID][]*attempt // by the log
	died  map[string]int64        // time of death by process
}

// attempt is one execution of a handler.
type attempt struct {
	process string
	token   queue.Token
	from    int64
	to      int64     // when it ended, or its process was known to be dead
	outcome string    // empty if its process was killed
	over    time.Time // by the wall clock, if it has an outcome
}

// leased is a lease as recorded in the steps of a task.
type leased struct {
	token    queue.Token
	process  string
	from, to time.Time
	end      queue.Trigger
}

// runsOf returns the runs that the log has, by task.
func runsOf(log []entry, died map[string]int64) (map[queue.ID][]*attempt, error) {
	runs := make(map[queue.ID][]*attempt)
	for _, e := range log {
		all := runs[e.Task]
		i := slices.IndexFunc(all, func(r *attempt) bool { return r.token == e.Token })
		switch {
		case e.What == begins && i >= 0:
			return nil, fmt.Errorf("task %s was run twice with the token %d", e.Task, e.Token)
		case e.What == begins:
			runs[e.Task] = append(all, &attempt{process: e.Process, token: e.Token, from: e.At, to: died[e.Process]})
		case i < 0 || all[i].process != e.Process:
			return nil, fmt.Errorf("task %s has ended with the token %d, and not begun", e.Task, e.Token)
		default:
			all[i].to, all[i].outcome, all[i].over = e.At, e.Outcome, time.Unix(0, e.Wall)
		}
	}
	return runs, nil
}

// leasesOf returns the leases of a task, oldest first.
func leasesOf(t *queue.Task) (leases []leased) {
	for _, s := range t.Steps {
		switch last := len(leases) - 1; {
		case s.On == queue.OnClaim:
			leases = append(leases, leased{token: s.Token, process: s.By, from: s.At})
		case last >= 0 && leases[last].end == 0:
			leases[last].to, leases[last].end = s.At, s.On
		}
	}
	return leases
}

// verify returns all violations.
func (e *evidence) verify() (wrong []error) {
	found := make(map[queue.ID]bool)
	for i := range e.tasks {
		t := &e.tasks[i]
		found[t.ID] = true
		for _, check := range []func(*queue.Task) error{legal, e.finished, e.known, e.alone} {
			if err := check(t); err != nil {
				wrong = append(wrong, fmt.Errorf("task %s: %w\n%s", t.ID, err, e.life(t)))
			}
		}
	}
	for id := range e.plans {
		if !found[id] {
			wrong = append(wrong, fmt.Errorf("task %s was accepted and is not there", id))
		}
	}
	for id := range e.runs {
		if !found[id] {
			wrong = append(wrong, fmt.Errorf("task %s was run and is not there", id))
		}
	}
	return append(wrong, e.limits()...)
}

// legal: a task's state follows from its steps, each step is a possible transition, and
// its tokens grow. Whether older tasks start first cannot be checked here: a crash
// forgets a claim that no worker has received, but may keep a later one.
func legal(t *queue.Task) error {
	from, token := queue.State(0), queue.Token(0)
	for _, s := range t.Steps {
		if !queue.Allowed(from, s.On, s.To) {
			return fmt.Errorf("there is no %s from %s to %s", s.On, from, s.To)
		}
		if s.On == queue.OnClaim && s.Token <= token {
			return fmt.Errorf("the token %d comes after %d", s.Token, token)
		}
		from, token = s.To, max(token, s.Token)
	}
	if from != t.State {
		return fmt.Errorf("it is %s, and its steps end with %s", t.State, from)
	}
	return nil
}

// finished: an accepted task has ended once, as planned, by its last lease.
func (e *evidence) finished(t *queue.Task) error {
	p, accepted := e.plans[t.ID]
	if accepted && t.State != p.ends() {
		return fmt.Errorf("it is %s, want %s", t.State, p.ends())
	}
	if !t.State.Finished() {
		return fmt.Errorf("it is %s, and no worker has it", t.State)
	}
	ended := 0
	for _, s := range t.Steps {
		if s.To.Finished() {
			ended++
		}
	}
	if ended != 1 || len(t.Steps) >= queue.MaxSteps {
		return fmt.Errorf("it has finished %d times, in %d steps", ended, len(t.Steps))
	}
	return nil
}

// known: the store has a lease of the same process for each run of a handler, and each
// outcome in the store was logged by its handler before.
func (e *evidence) known(t *queue.Task) error {
	leases, runs := leasesOf(t), e.runs[t.ID]
	for _, r := range runs {
		if !slices.ContainsFunc(leases, func(l leased) bool { return l.token == r.token && l.process == r.process }) {
			return fmt.Errorf("%s runs it with the token %d, of which the store does not know", r.process, r.token)
		}
	}
	says := map[queue.Trigger]string{
		queue.OnSuccess: succeeded, queue.OnFailure: failed, queue.OnSnooze: snoozed, queue.OnRelease: interrupted,
	}
	for _, l := range leases {
		want := says[l.end]
		if want == "" {
			continue
		}
		i := slices.IndexFunc(runs, func(r *attempt) bool { return r.token == l.token })
		if i < 0 && l.end == queue.OnRelease {
			continue // its worker had prefetched it and had no slot for it
		}
		if i >= 0 && l.end == queue.OnRelease && (runs[i].outcome == failed || runs[i].outcome == snoozed) {
			continue // its context ended when that was written: it was stopped, and continued after its lease
		}
		if i < 0 || runs[i].outcome != want {
			return fmt.Errorf("the lease %d has ended by %s, which its handler has not written down", l.token, l.end)
		}
	}
	return nil
}

// alone: a lease is not taken from a live worker before it expires, and of two runs at
// the same time the one with the older lease has lost it. The older run may have begun
// later: a process that is stopped between its last check of the lease and its handler
// begins when it continues.
func (e *evidence) alone(t *queue.Task) error {
	lost := make(map[queue.Token]bool)
	for _, l := range leasesOf(t) {
		if l.end != queue.OnLost {
			continue
		}
		lost[l.token] = true
		if took := l.to.Sub(l.from); took < lease && !e.diedWithStore(l.process) {
			return fmt.Errorf("%s has lost it %s after its lease of %s began", l.process, took, lease)
		}
	}
	runs := slices.Clone(e.runs[t.ID])
	slices.SortFunc(runs, func(a, b *attempt) int { return cmp.Compare(a.token, b.token) })
	for i, old := range runs {
		for _, r := range runs[i+1:] {
			if r.from < old.to && old.from < r.to && !lost[old.token] {
				return fmt.Errorf("%s runs it with the token %d while %s does with %d, which was not lost",
					r.process, r.token, old.process, old.token)
			}
		}
	}
	return nil
}

// diedWithStore reports whether a process was a server that was killed: its leases end
// with it.
func (e *evidence) diedWithStore(process string) bool {
	return strings.HasPrefix(process, isServer) && e.died[process] != 0
}

// limits: there are never more leases at a time than the limits of the queue and of a key
// allow. The leases of a killed server end with its runs, though the store records that
// only when it is opened again.
func (e *evidence) limits() (wrong []error) {
	type change struct {
		at  time.Time
		by  int
		key string
	}
	var changes []change
	for i := range e.tasks {
		for _, l := range leasesOf(&e.tasks[i]) {
			for _, r := range e.runs[e.tasks[i].ID] {
				if e.diedWithStore(l.process) && r.token == l.token && r.outcome != "" && r.over.Before(l.to) {
					l.to = r.over
				}
			}
			changes = append(changes, change{l.from, 1, e.tasks[i].Key}, change{l.to, -1, e.tasks[i].Key})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) // ends before beginnings
	})
	total, keys := 0, make(map[string]int)
	for _, c := range changes {
		total += c.by
		keys[c.key] += c.by
		if total > queueMax {
			wrong = append(wrong, fmt.Errorf("at %v there are %d leases, of at most %d", c.at, total, queueMax))
		}
		if n := keys[c.key]; c.key != "" && n > keyMax {
			wrong = append(wrong, fmt.Errorf("at %v there are %d leases of %s, of at most %d", c.at, n, c.key, keyMax))
		}
	}
	return wrong
}

// life formats all that is known of a task.
func (e *evidence) life(t *queue.Task) string {
	var b strings.Builder
	for _, s := range t.Steps {
		fmt.Fprintf(&b, "\t%s %s → %s %s %d %s\n", s.At.Format("05.000000"), s.On, s.To, s.By, s.Token, s.Detail)
	}
	for _, r := range e.runs[t.ID] {
		fmt.Fprintf(&b, "\t%d … %d %s %d %s\n", r.from, r.to, r.process, r.token, r.outcome)
	}
	return b.String()
}

// summary counts what has happened, to see whether the test was effective.
func (e *evidence) summary() string {
	ends := make(map[queue.Trigger]int)
	killed, overlaps := 0, 0
	for i := range e.tasks {
		for _, l := range leasesOf(&e.tasks[i]) {
			ends[l.end]++
		}
	}
	for _, runs := range e.runs {
		for i, r := range runs {
			if r.outcome == "" {
				killed++
			}
			if i > 0 && r.from < runs[i-1].to {
				overlaps++
			}
		}
	}
	text := fmt.Sprintf(
		"%d tasks; %d runs were killed, and %d begun while an older one of the task was at work; leases end by",
		len(e.tasks), killed, overlaps)
	for _, on := range slices.Sorted(maps.Keys(ends)) {
		text += fmt.Sprintf(" %s: %d", on, ends[on])
	}
	return text
}
