package queue

import (
	"fmt"
	"slices"
)

// Trigger is what makes a task change its state, in its steps and in the table of
// [Transitions]. What callers ask for are types of their own, with the numbers and names of
// some triggers: [Order] in a command, [OutcomeKind] in an outcome, and [StopReason] in the
// answer to a heartbeat.
type Trigger uint8

// The triggers.
const (
	OnSubmit  Trigger = iota + 1 // it was accepted
	OnDue                        // its RunAt has come
	OnHold                       // something else than its turn keeps it from starting
	OnUnhold                     // nothing does any more
	OnClaim                      // a worker leased it
	OnSuccess                    // its handler returned without an error
	OnFailure                    // its handler returned an error, panicked or ran out of time
	OnSnooze                     // its handler asked to be called again later; no failure
	OnRelease                    // its worker ended the lease without a verdict: it shuts down, or is short of something
	OnLost                       // its lease ran out: the worker died, or hangs
	OnPause                      // a command paused it
	OnResume                     // a command resumed it
	OnCancel                     // a command cancelled it
	OnRetry                      // a command has a finished task run again
	OnExpire                     // its Deadline came before it started
	OnForget                     // it has been finished long enough, or was purged
	OnEdit                       // a command changed its tier, key, times or labels; see [Edit]
)

var triggerNames = [...]string{
	OnSubmit: "submit", OnDue: "due", OnHold: "hold", OnUnhold: "unhold", OnClaim: "claim", OnSuccess: "succeed",
	OnFailure: "fail", OnSnooze: "snooze", OnRelease: releaseName, OnLost: "lose", OnPause: "pause",
	OnResume: "resume", OnCancel: "cancel", OnRetry: "retry", OnExpire: "expire", OnForget: "forget",
	OnEdit: "edit",
}

// releaseName is the name of OnRelease in JSON. It stays as clients and logs have it.
const releaseName = "give_back"

// String is the name of the trigger, as it is used everywhere.
func (t Trigger) String() string {
	if t > 0 && int(t) < len(triggerNames) {
		return triggerNames[t]
	}
	return fmt.Sprintf("trigger(%d)", uint8(t))
}

// MarshalText is String.
func (t Trigger) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the name of a trigger.
func (t *Trigger) UnmarshalText(text []byte) error {
	i := slices.Index(triggerNames[:], string(text))
	if i <= 0 {
		return fmt.Errorf("%w: %q is no trigger; there are %v", ErrInvalid, text, triggerNames[1:])
	}
	*t = Trigger(i)
	return nil
}

// Transition is one line of the table of all changes of state that exist.
type Transition struct {
	From State   // zero: the task did not exist
	On   Trigger // what happens
	To   []State // where the task may be afterwards; empty: it does not exist any more
}

// Transitions is that table. No store makes a change that is not in it. A task
// that is Running changes its state only by what its worker says or by the end
// of its lease: a pause or a cancel of it is an order to the worker, and takes
// effect when the worker gives the task up. A handler that finishes all the
// same has succeeded.
//
// A task with the work of one that has been put aside as poison is put aside as
// well, when it is submitted.
func Transitions() []Transition { return slices.Clone(transitionTable) }

var transitionTable = []Transition{
	{0, OnSubmit, []State{Scheduled, Held, Waiting, Dead}},

	{Scheduled, OnDue, []State{Held, Waiting}},
	{Scheduled, OnPause, []State{Paused}},
	{Scheduled, OnCancel, []State{Cancelled}},
	{Scheduled, OnExpire, []State{Dead}},
	{Scheduled, OnRetry, []State{Held, Waiting}}, // now, not at the end of its delay
	{Scheduled, OnEdit, []State{Scheduled, Held, Waiting}},

	{Held, OnUnhold, []State{Waiting}},
	{Held, OnPause, []State{Paused}},
	{Held, OnCancel, []State{Cancelled}},
	{Held, OnExpire, []State{Dead}},
	{Held, OnEdit, []State{Scheduled, Held, Waiting}},

	{Waiting, OnHold, []State{Held}},
	{Waiting, OnClaim, []State{Running}},
	{Waiting, OnPause, []State{Paused}},
	{Waiting, OnCancel, []State{Cancelled}},
	{Waiting, OnExpire, []State{Dead}},
	{Waiting, OnEdit, []State{Scheduled, Held, Waiting}},

	{Running, OnSuccess, []State{Succeeded}},
	{Running, OnFailure, []State{Scheduled, Dead}},
	{Running, OnSnooze, []State{Scheduled}},
	{Running, OnRelease, []State{Held, Waiting}},
	{Running, OnLost, []State{Held, Waiting, Dead}}, // dead: once too often
	{Running, OnPause, []State{Paused}},
	{Running, OnCancel, []State{Cancelled}},

	{Paused, OnResume, []State{Scheduled, Held, Waiting}},
	{Paused, OnCancel, []State{Cancelled}},
	{Paused, OnExpire, []State{Dead}},
	{Paused, OnEdit, []State{Paused}},

	{Succeeded, OnForget, nil},
	{Dead, OnRetry, []State{Held, Waiting}},
	{Dead, OnForget, nil},
	{Cancelled, OnRetry, []State{Held, Waiting}},
	{Cancelled, OnForget, nil},
}

// Allowed reports whether the table has a change of state.
func Allowed(from State, on Trigger, to State) bool {
	for _, t := range transitionTable {
		if t.From == from && t.On == on {
			return slices.Contains(t.To, to) || to == 0 && len(t.To) == 0
		}
	}
	return false
}
