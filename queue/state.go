package queue

import "fmt"

// State is the state of a task. A task is in exactly one state at any time, and changes
// it only by a [Transition] of [Transitions].
type State uint8

// The states. Zero is the state of a task that does not exist.
const (
	// Scheduled tasks wait for their RunAt: for a delay, or for the backoff of a retry.
	Scheduled State = iota + 1
	// Held tasks cannot start because of a [Hold].
	Held
	// Waiting tasks are eligible and wait for their turn.
	Waiting
	// Running tasks are leased to a worker.
	Running
	// Paused tasks wait to be resumed.
	Paused
	// Succeeded tasks are finished: their handler returned no error.
	Succeeded
	// Dead tasks are finished without success: the dead letters.
	Dead
	// Cancelled tasks are finished because they were cancelled.
	Cancelled
)

// States are all states, in the order in which they are declared.
func States() []State {
	return []State{Scheduled, Held, Waiting, Running, Paused, Succeeded, Dead, Cancelled}
}

var stateNames = [...]string{
	0: "none", Scheduled: "scheduled", Held: "held", Waiting: "waiting", Running: "running", Paused: "paused",
	Succeeded: "succeeded", Dead: "dead", Cancelled: "cancelled",
}

// Finished reports whether a task in this state does not change any more by itself,
// except that it is forgotten.
func (s State) Finished() bool { return s == Succeeded || s == Dead || s == Cancelled }

// Pending reports whether a task in this state is unfinished and does not run.
func (s State) Pending() bool { return s == Scheduled || s == Held || s == Waiting || s == Paused }

// String returns the name of the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState parses the name of a state.
func ParseState(name string) (State, error) {
	for _, s := range States() {
		if stateNames[s] == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%w: unknown state %q; the states are %v", ErrInvalid, name, States())
}

// MarshalText returns the name of the state.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the name of a state, or "none", the state that a new task comes
// from in an event.
func (s *State) UnmarshalText(text []byte) (err error) {
	if string(text) == stateNames[0] {
		*s = 0
		return nil
	}
	*s, err = ParseState(string(text))
	return err
}
