package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/reference"
)

// judge keeps an account of its own of every task, from the calls that the store
// was asked, and compares it with what the store answers and tells. It knows
// nothing of how a store works.
type judge struct {
	w        *world
	clock    time.Time // the store's: the latest that it was told since it was opened
	lives    map[queue.ID]*life
	order    []*life           // as they were accepted
	rules    *reference.Rules  // with the tasks of lives that are not forgotten
	fresh    []*reference.Task // that the present call is to accept
	receipts []queue.Receipt
	refusal  error // why the rules refuse its tasks
	attempts map[leaseOf]*attempt

	schedules map[string]*rota
	told      []queue.Event // all that have come

	looked  time.Time      // for what somebody should be doing
	wasNext map[*life]bool // what nobody claimed when the judge looked last
	opened  bool           // the store has been opened again, and has not been called yet
	saved   *judge         // as it was before a call that the disk may not have
}

// life is what the judge knows of a task.
type life struct {
	*reference.Task
	orphaned bool  // cancelled, because a task before it was forgotten
	freed    *call // which has let it wait for nothing but its turn

	token    queue.Token                   // of its lease, or of the last one
	answered bool                          // its claim was answered: it outlives the store
	obeys    queue.Order                   // what its lease ended with, and has yet to take effect
	ended    map[queue.Token]queue.Trigger // outcomes that were accepted

	// What it was before a claim found that it had passed its deadline: nobody
	// waits until that is written.
	doubt   queue.State
	applies int // of the disk then

	forgotten bool
}

func newJudge(w *world) *judge {
	return &judge{
		w: w, lives: make(map[queue.ID]*life), rules: reference.NewRules(), attempts: make(map[leaseOf]*attempt),
		schedules: make(map[string]*rota),
	}
}

// broken ends the simulation: something is not as it should be.
func (j *judge) broken(l *life, format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	if l != nil {
		text = fmt.Sprintf("%s: %s", l, text)
	}
	j.w.log("BROKEN %s", text)
	j.w.fail(errors.New(text))
}

func (l *life) String() string {
	if l == nil {
		return "an unknown task"
	}
	return fmt.Sprintf("task %d", l.Seq)
}

func (l *life) running() bool { return !l.forgotten && l.State == queue.Running }

// live reports whether a token is that of a lease that is not over.
func (l *life) live(token queue.Token) bool { return !l.forgotten && l.Leased(token) }

// unfinished reports whether something can still happen to the task by itself.
func (l *life) unfinished() bool { return !l.forgotten && !l.State.Finished() }

// name is a task in the history.
func (j *judge) name(id queue.ID) string { return j.lives[id].String() }

// look looks at a call, and at the events that it brought.
func (j *judge) look(c *call, events []queue.Event) {
	if c == nil {
		if len(events) > 0 {
			j.broken(nil, "events come though nothing was called: %+v", events)
		}
		return
	}
	moves := c.err == nil || c.flaw != sound || errors.Is(c.err, queue.ErrFull) || errors.Is(c.err, queue.ErrInvalid) ||
		errors.Is(c.err, queue.ErrChanged)
	if moves && j.opened && !c.now.IsZero() {
		j.begin(c.now)
	}
	if moves && c.now.After(j.clock) {
		j.clock = c.now
	}
	c.events = len(events)
	j.ask(c)
	j.receive(c, events)
	for i := range events {
		j.event(c, &events[i])
	}
	if c.err == nil || c.flaw != sound {
		j.obey(c)
	}
	j.record(c, events)
	j.tells(c, events)
	switch {
	case c.err == nil:
		j.answer(c)
	case c.flaw != sound && !j.mayRefuse(c): // a refusal promises nothing
		j.broken(nil, "the disk has failed, and %s is answered %v", c.name, c.err)
	case c.flaw == sound && (len(events) > 0 || !j.mayRefuse(c)):
		j.broken(nil, "%s is answered %v, and brings %d events", c.name, c.err, len(events))
	}
	if c.flaw == refused {
		j.lives, j.order, j.rules = j.saved.lives, j.saved.order, j.saved.rules // it has not happened
		j.schedules = j.saved.schedules
	}
	j.saved = nil
}

// begin has all leases begin anew, with the first call of a store that has been
// opened again. Times in the rows that are later than the call are moved back.
func (j *judge) begin(now time.Time) {
	j.opened = false
	if back := j.clock.Sub(now); back > 0 {
		j.w.log("the rows are %s ahead", back)
		j.rules.Tasks.SetBack(now, back)
	}
	j.clock = now
	for _, l := range j.order {
		if l.running() {
			l.Renew(now)
		}
	}
}

// mayRefuse reports whether an error is one that a sound store may answer.
func (j *judge) mayRefuse(c *call) bool {
	switch {
	case errors.Is(c.err, queue.ErrUnavailable):
		return j.w.store == nil || j.w.ill ||
			errors.Is(c.err, context.Canceled) || errors.Is(c.err, context.DeadlineExceeded)
	case errors.Is(c.err, queue.ErrFull):
		return errors.Is(j.refusal, queue.ErrFull)
	case errors.Is(c.err, queue.ErrInvalid):
		return c.name == "Submit" && errors.Is(j.refusal, queue.ErrInvalid)
	case errors.Is(c.err, queue.ErrChanged):
		r, ok := c.args.(queue.Reschedule)
		if !ok {
			return false
		}
		_, err := j.reschedules(&r)
		return errors.Is(err, queue.ErrChanged)
	default:
		return false
	}
}

// record writes a call into the history, unless it is one of the many that
// change nothing.
func (j *judge) record(c *call, events []queue.Event) {
	dull := c.name == "Maintain" || c.name == "Heartbeat" || c.name == "Claim" || c.name == "Schedules" || c.name == "Find"
	if dull && c.err == nil && len(events) == 0 && !c.lost {
		j.w.log("%s %s", c.who.name, c.name)
		return
	}
	text := fmt.Sprintf("%s %s at %s", c.who.name, c.name, c.now.Sub(j.w.begun))
	if c.err != nil {
		text += fmt.Sprintf(": %v", c.err)
	} else if c.lost {
		text += ": the answer is lost"
	}
	j.w.log("%s", text)
	for i := range events {
		e := &events[i]
		detail, _, _ := strings.Cut(e.Detail, "\n") // goroutines of a stack have other numbers each time
		if e.On == queue.OnSubmit {
			detail = strings.TrimSpace(e.ID.String() + " " + detail) // much goes by the ID, which is drawn by lot
		}
		j.w.log("    %s %s → %s %s %d %s", j.name(e.ID), e.On, e.To, e.By, e.Token, detail)
	}
}

// copied is the account as it is now, for when a call has not happened after all.
func (j *judge) copied() *judge {
	old := *j
	old.rules = j.rules.Clone()
	old.lives, old.order = make(map[queue.ID]*life), make([]*life, len(j.order))
	for i, l := range j.order {
		same := *l
		same.ended = maps.Clone(l.ended)
		if !l.forgotten {
			same.Task = old.rules.Tasks.Get(l.ID)
		}
		old.order[i] = &same
		old.lives[l.ID] = &same
	}
	old.schedules = j.copiedSchedules()
	return &old
}

// reopened compares what the store has found on its disk with the account. Leases
// may be over: a claim need not be written down.
func (j *judge) reopened(found []queue.Task) {
	j.rules.Reopen()
	j.clock, j.opened = time.Time{}, true
	for i := range found {
		if found[i].Changed.After(j.clock) {
			j.clock = found[i].Changed
		}
	}
	there := make(map[queue.ID]*queue.Task)
	for i := range found {
		there[found[i].ID] = &found[i]
		if l := j.lives[found[i].ID]; l == nil || l.forgotten {
			j.broken(l, "it is there after a crash: %s", found[i].ID)
		}
	}
	for _, l := range j.order {
		if l.forgotten {
			continue
		}
		t := there[l.ID]
		if t == nil {
			j.broken(l, "it was %s, and is gone after a crash", l.State)
			return
		}
		j.resume(l, t)
	}
}

// resume takes a task as it was found after a crash.
func (j *judge) resume(l *life, t *queue.Task) {
	state := recorded(t)
	switch {
	case l.State == queue.Running && state == queue.Running:
		if t.Lease.Token != l.token {
			j.broken(l, "its lease has the token %d after a crash, it had %d", t.Lease.Token, l.token)
		}
	case l.State == queue.Running && (state == queue.Waiting || state == queue.Held) && (j.w.power || !l.answered):
	case l.doubt != 0 && l.applies == j.w.disk.applies && pendingAs(l.doubt, state):
	case !pendingAs(l.State, state):
		j.broken(l, "it was %s, and is %s after a crash", l.State, state)
	}
	if t.Failures != l.Failures || t.Crashes != l.Crashes || !bytes.Equal(t.Checkpoint, l.Checkpoint) {
		j.broken(l, "after a crash it has %d failures, %d crashes and the checkpoint %q; it had %d, %d and %q",
			t.Failures, t.Crashes, t.Checkpoint, l.Failures, l.Crashes, l.Checkpoint)
	}
	if state == queue.Dead && l.State == queue.Dead && l.Poisonous() != (t.Steps[len(t.Steps)-1].On == queue.OnLost) {
		j.broken(l, "after a crash its steps are %+v; they were %+v", t.Steps, l.Steps)
	}
	if state != queue.Running {
		l.Lease = queue.Lease{}
	}
	l.State, l.Order, l.doubt = state, t.Order, 0
	l.Submitted, l.Steps = t.Submitted, slices.Clone(t.Steps) // by which RunAt and Deadline are corrected
}

// recorded is the state that the steps of a task have led to: what a queue's
// limits hold is Waiting by that.
func recorded(t *queue.Task) queue.State { return t.Steps[len(t.Steps)-1].To }

// pendingAs reports whether a task that was in a state can be in another after
// a crash: what held it may be over.
func pendingAs(was, is queue.State) bool {
	either := []queue.State{queue.Waiting, queue.Held}
	return was == is || slices.Contains(either, was) && slices.Contains(either, is)
}

// audit compares all that the store has with the account.
func (j *judge) audit() {
	if j.w.store == nil || j.w.ill {
		return
	}
	found, err := j.w.everything()
	if err != nil {
		j.broken(nil, "find all tasks: %v", err)
		return
	}
	n := 0
	for _, l := range j.order {
		if !l.forgotten {
			n++
		}
	}
	if len(found) != n {
		j.broken(nil, "the store has %d tasks, there are %d", len(found), n)
	}
	for i := range found {
		t := &found[i]
		l := j.lives[t.ID]
		switch {
		case l == nil || l.forgotten:
			j.broken(l, "it is there")
		case recorded(t) != l.State, t.Failures != l.Failures, t.Crashes != l.Crashes,
			!bytes.Equal(t.Checkpoint, l.Checkpoint), t.Order != l.Order,
			t.State == queue.Running && t.Lease.Token != l.Lease.Token:
			j.broken(l, "it is found as %+v; the account has %+v", t, l)
		}
	}
}
