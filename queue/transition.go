package queue

import (
	"fmt"
	"slices"
)

// Trigger is the cause of a change of state, in the steps of a task and in the table of
// [Transitions]. Arguments of calls have types of their own, with the numbers and names
// of some triggers: [Order] in a command, [OutcomeKind] in an outcome, and [StopReason]
// in the answer to a heartbeat.
type Trigger uint8

// The triggers.
const (
	OnSubmit  Trigger = iota + 1 // it was accepted
	OnDue                        // its RunAt has come
	OnHold                       // a hold keeps it from starting
	OnUnhold                     // no hold is left
	OnClaim                      // a worker leased it
	OnSuccess                    // its handler returned without an error
	OnFailure                    // its handler returned an error, panicked or ran out of time
	OnSnooze                     // its handler asked to be called again later; no failure
	OnRelease                    // its worker ended the lease without success or failure: it stops, or lacks a resource
	OnLost                       // its lease expired or ended with its process: the worker died or hangs
	OnPause                      // a command paused it
	OnResume                     // a command resumed it
	OnCancel                     // a command cancelled it, or a predecessor was forgotten; see After of [Options]
	OnRetry                      // a command restarted a finished task, or ended the delay of a scheduled one
	OnExpire                     // its Deadline came before it started
	OnForget                     // its retention is over, or it was purged
	OnEdit                       // a command changed its tier, key, times or labels; see [Edit]
)

var triggerNames = [...]string{
	OnSubmit: "submit", OnDue: "due", OnHold: "hold", OnUnhold: "unhold", OnClaim: "claim", OnSuccess: "succeed",
	OnFailure: "fail", OnSnooze: "snooze", OnRelease: releaseName, OnLost: "lose", OnPause: "pause",
	OnResume: "resume", OnCancel: "cancel", OnRetry: "retry", OnExpire: "expire", OnForget: "forget",
	OnEdit: "edit",
}

// releaseName is the name of OnRelease in JSON, which stays as clients and logs have it.
const releaseName = "give_back"

// String returns the name of the trigger.
func (t Trigger) String() string {
	if t > 0 && int(t) < len(triggerNames) {
		return triggerNames[t]
	}
	return fmt.Sprintf("trigger(%d)", uint8(t))
}

// MarshalText returns the name of the trigger.
func (t Trigger) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText parses the name of a trigger.
func (t *Trigger) UnmarshalText(text []byte) error {
	i := slices.Index(triggerNames[:], string(text))
	if i <= 0 {
		return fmt.Errorf("%w: unknown trigger %q; the triggers are %v", ErrInvalid, text, triggerNames[1:])
	}
	*t = Trigger(i)
	return nil
}

// Transition is one line of the table of all changes of state.
type Transition struct {
	From State   // zero: the task did not exist
	On   Trigger // the cause
	To   []State // the possible states afterwards; empty: the task does not exist any more
}

// Transitions is the table of all changes of state. No store makes another change. A
// Running task changes its state only by the outcome of its worker or by the end of its
// lease: a pause or a cancel is an order to the worker, and takes effect when the worker
// ends the lease. A handler that succeeds nevertheless has succeeded.
//
// A task with the same work as one that is dead as poison is dead when it is submitted.
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
	{Running, OnLost, []State{Held, Waiting, Dead}}, // dead after the last allowed failure or crash
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
