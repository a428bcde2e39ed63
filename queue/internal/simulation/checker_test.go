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

// checker keeps its own record of every task, from the calls that were made, and compares
// it with the answers and events of the store. It does not depend on how the store works.
type checker struct {
	w        *world
	clock    time.Time // the store's: the latest time of a call since it was opened
	lives    map[queue.ID]*life
	order    []*life           // in the order in which they were accepted
	rules    *reference.Rules  // with the tasks of lives that are not forgotten
	fresh    []*reference.Task // that the present call is to accept
	receipts []queue.Receipt
	refusal  error // the error with which the rules refuse its tasks
	attempts map[leaseOf]*attempt

	schedules map[string]*scheduleModel
	events    []queue.Event // all events so far

	looked  time.Time      // when it last checked that no due work is left
	wasNext map[*life]bool // tasks that could start and were not claimed when the checker looked last
	opened  bool           // the store has been opened again, and no call has been made yet
	saved   *checker       // the state before a call whose changes the disk may not have
}

// life is the checker's record of a task.
type life struct {
	*reference.Task
	orphaned bool  // cancelled, because a predecessor was forgotten
	freed    *call // the call after which it waits for its turn alone

	token    queue.Token                   // of its lease, or of the last one
	answered bool                          // its claim was answered, so its lease survives a crash of the store
	obeys    queue.Order                   // the outcome that ended its lease, until it takes effect
	ended    map[queue.Token]queue.Trigger // the number of accepted outcomes

	// The state before a claim found that the deadline has passed: no call waits until
	// that change is durable.
	doubt   queue.State
	applies int // of the disk at that time

	forgotten bool
}

func newChecker(w *world) *checker {
	return &checker{
		w: w, lives: make(map[queue.ID]*life), rules: reference.NewRules(), attempts: make(map[leaseOf]*attempt),
		schedules: make(map[string]*scheduleModel),
	}
}

// broken ends the simulation with a failure.
func (ch *checker) broken(l *life, format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	if l != nil {
		text = fmt.Sprintf("%s: %s", l, text)
	}
	ch.w.log("BROKEN %s", text)
	ch.w.fail(errors.New(text))
}

func (l *life) String() string {
	if l == nil {
		return "an unknown task"
	}
	return fmt.Sprintf("task %d", l.Seq)
}

func (l *life) running() bool { return !l.forgotten && l.State == queue.Running }

// live reports whether a token is that of a live lease.
func (l *life) live(token queue.Token) bool { return !l.forgotten && l.Leased(token) }

// unfinished reports whether the task can still change by itself.
func (l *life) unfinished() bool { return !l.forgotten && !l.State.Finished() }

// name returns the name of a task in the history.
func (ch *checker) name(id queue.ID) string { return ch.lives[id].String() }

// look checks a call and the events that it caused.
func (ch *checker) look(c *call, events []queue.Event) {
	if c == nil {
		if len(events) > 0 {
			ch.broken(nil, "events come though nothing was called: %+v", events)
		}
		return
	}
	moves := c.err == nil || c.flaw != sound || errors.Is(c.err, queue.ErrFull) || errors.Is(c.err, queue.ErrInvalid) ||
		errors.Is(c.err, queue.ErrChanged)
	if moves && ch.opened && !c.now.IsZero() {
		ch.begin(c.now)
	}
	if moves && c.now.After(ch.clock) {
		ch.clock = c.now
	}
	c.events = len(events)
	ch.ask(c)
	ch.receive(c, events)
	for i := range events {
		ch.event(c, &events[i])
	}
	if c.err == nil || c.flaw != sound {
		ch.obey(c)
	}
	ch.record(c, events)
	ch.notifies(c, events)
	switch {
	case c.err == nil:
		ch.answer(c)
	case c.flaw != sound && !ch.mayRefuse(c): // a refused call promises nothing
		ch.broken(nil, "the disk has failed, and %s is answered %v", c.name, c.err)
	case c.flaw == sound && (len(events) > 0 || !ch.mayRefuse(c)):
		ch.broken(nil, "%s is answered %v, and brings %d events", c.name, c.err, len(events))
	}
	if c.flaw == refused {
		ch.lives, ch.order, ch.rules = ch.saved.lives, ch.saved.order, ch.saved.rules // the call has not happened
		ch.schedules = ch.saved.schedules
	}
	ch.saved = nil
}

// begin restarts all leases at the first call of a store that has been opened again.
// Times in the rows that are later than the call are moved back.
func (ch *checker) begin(now time.Time) {
	ch.opened = false
	if back := ch.clock.Sub(now); back > 0 {
		ch.w.log("the rows are %s ahead", back)
		ch.rules.Tasks.SetBack(now, back)
	}
	ch.clock = now
	for _, l := range ch.order {
		if l.running() {
			l.Renew(now)
		}
	}
}

// mayRefuse reports whether a correct store may return an error.
func (ch *checker) mayRefuse(c *call) bool {
	switch {
	case errors.Is(c.err, queue.ErrUnavailable):
		return ch.w.store == nil || ch.w.ill ||
			errors.Is(c.err, context.Canceled) || errors.Is(c.err, context.DeadlineExceeded)
	case errors.Is(c.err, queue.ErrFull):
		return errors.Is(ch.refusal, queue.ErrFull)
	case errors.Is(c.err, queue.ErrInvalid):
		return c.name == "Submit" && errors.Is(ch.refusal, queue.ErrInvalid)
	case errors.Is(c.err, queue.ErrChanged):
		r, ok := c.args.(queue.Reschedule)
		if !ok {
			return false
		}
		_, err := ch.reschedules(&r)
		return errors.Is(err, queue.ErrChanged)
	default:
		return false
	}
}

// record writes a call into the history, unless it is one of the many that change
// nothing.
func (ch *checker) record(c *call, events []queue.Event) {
	dull := c.name == "Maintain" || c.name == "Heartbeat" || c.name == "Claim" || c.name == "Schedules" || c.name == "Find"
	if dull && c.err == nil && len(events) == 0 && !c.lost {
		ch.w.log("%s %s", c.author.name, c.name)
		return
	}
	text := fmt.Sprintf("%s %s at %s", c.author.name, c.name, c.now.Sub(ch.w.begun))
	if c.err != nil {
		text += fmt.Sprintf(": %v", c.err)
	} else if c.lost {
		text += ": the answer is lost"
	}
	ch.w.log("%s", text)
	for i := range events {
		e := &events[i]
		detail, _, _ := strings.Cut(e.Detail, "\n") // goroutines of a stack have other numbers each time
		if e.On == queue.OnSubmit {
			detail = strings.TrimSpace(e.ID.String() + " " + detail) // much depends on the ID, which is random
		}
		ch.w.log("    %s %s → %s %s %d %s", ch.name(e.ID), e.On, e.To, e.By, e.Token, detail)
	}
}

// copied returns a copy of the checker's record, for a call that may turn out not to have
// happened.
func (ch *checker) copied() *checker {
	old := *ch
	old.rules = ch.rules.Clone()
	old.lives, old.order = make(map[queue.ID]*life), make([]*life, len(ch.order))
	for i, l := range ch.order {
		same := *l
		same.ended = maps.Clone(l.ended)
		if !l.forgotten {
			same.Task = old.rules.Tasks.Get(l.ID)
		}
		old.order[i] = &same
		old.lives[l.ID] = &same
	}
	old.schedules = ch.copiedSchedules()
	return &old
}

// reopened compares the tasks that a store has found on its disk with the record. Leases
// may have ended, because a claim need not be durable.
func (ch *checker) reopened(found []queue.Task) {
	ch.rules.Reopen()
	ch.clock, ch.opened = time.Time{}, true
	for i := range found {
		if found[i].Changed.After(ch.clock) {
			ch.clock = found[i].Changed
		}
	}
	there := make(map[queue.ID]*queue.Task)
	for i := range found {
		there[found[i].ID] = &found[i]
		if l := ch.lives[found[i].ID]; l == nil || l.forgotten {
			ch.broken(l, "it is there after a crash: %s", found[i].ID)
		}
	}
	for _, l := range ch.order {
		if l.forgotten {
			continue
		}
		t := there[l.ID]
		if t == nil {
			ch.broken(l, "it was %s, and is gone after a crash", l.State)
			return
		}
		ch.resume(l, t)
	}
}

// resume sets a life to the task that was found after a crash.
func (ch *checker) resume(l *life, t *queue.Task) {
	state := recorded(t)
	switch {
	case l.State == queue.Running && state == queue.Running:
		if t.Lease.Token != l.token {
			ch.broken(l, "its lease has the token %d after a crash, it had %d", t.Lease.Token, l.token)
		}
	case l.State == queue.Running && (state == queue.Waiting || state == queue.Held) && (ch.w.power || !l.answered):
	case l.doubt != 0 && l.applies == ch.w.disk.applies && pendingAs(l.doubt, state):
	case !pendingAs(l.State, state):
		ch.broken(l, "it was %s, and is %s after a crash", l.State, state)
	}
	if t.Failures != l.Failures || t.Crashes != l.Crashes || !bytes.Equal(t.Checkpoint, l.Checkpoint) {
		ch.broken(l, "after a crash it has %d failures, %d crashes and the checkpoint %q; it had %d, %d and %q",
			t.Failures, t.Crashes, t.Checkpoint, l.Failures, l.Crashes, l.Checkpoint)
	}
	if state == queue.Dead && l.State == queue.Dead && l.Poisonous() != (t.Steps[len(t.Steps)-1].On == queue.OnLost) {
		ch.broken(l, "after a crash its steps are %+v; they were %+v", t.Steps, l.Steps)
	}
	if state != queue.Running {
		l.Lease = queue.Lease{}
	}
	l.State, l.Order, l.doubt = state, t.Order, 0
	l.Submitted, l.Steps = t.Submitted, slices.Clone(t.Steps) // by which RunAt and Deadline are corrected
}

// recorded returns the state that the steps of a task have led to. A task that the limits
// of its queue hold is Waiting there.
func recorded(t *queue.Task) queue.State { return t.Steps[len(t.Steps)-1].To }

// pendingAs reports whether a task can be in state is after a crash that interrupted it
// in state was: the reason that held it may have ended.
func pendingAs(was, is queue.State) bool {
	either := []queue.State{queue.Waiting, queue.Held}
	return was == is || slices.Contains(either, was) && slices.Contains(either, is)
}

// audit compares all tasks of the store with the record.
func (ch *checker) audit() {
	if ch.w.store == nil || ch.w.ill {
		return
	}
	found, err := ch.w.everything()
	if err != nil {
		ch.broken(nil, "find all tasks: %v", err)
		return
	}
	n := 0
	for _, l := range ch.order {
		if !l.forgotten {
			n++
		}
	}
	if len(found) != n {
		ch.broken(nil, "the store has %d tasks, there are %d", len(found), n)
	}
	for i := range found {
		t := &found[i]
		l := ch.lives[t.ID]
		switch {
		case l == nil || l.forgotten:
			ch.broken(l, "it is there")
		case recorded(t) != l.State, t.Failures != l.Failures, t.Crashes != l.Crashes,
			!bytes.Equal(t.Checkpoint, l.Checkpoint), t.Order != l.Order,
			t.State == queue.Running && t.Lease.Token != l.Lease.Token:
			ch.broken(l, "it is found as %+v; the account has %+v", t, l)
		}
	}
}
