package queue

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors of calls. An error of a call wraps one of these. Its message names the task or
// the argument that it is about, and a remedy that is not obvious.
var (
	// ErrInvalid: an argument is not valid; the message names it.
	ErrInvalid = errors.New("queue: invalid")
	// ErrNotFound: there is no such task or schedule. A task may have been forgotten.
	ErrNotFound = errors.New("queue: not found")
	// ErrState: the state of the task does not allow the call. [Queue.Pause],
	// [Queue.Resume], [Queue.Cancel] and [Queue.Retry] return it; the message names the
	// state.
	ErrState = errors.New("queue: the state of the task does not allow it")
	// ErrFull: the queue has as many unfinished tasks as its limit allows.
	ErrFull = errors.New("queue: the queue is full")
	// ErrTooLarge: a payload, a result, a checkpoint or a call is larger than its limit.
	ErrTooLarge = errors.New("queue: too large")
	// ErrStale: the caller's lease of the task has ended. The task may be finished, or
	// another worker may run it; the caller's outcome is ignored.
	ErrStale = errors.New("queue: the lease has ended")
	// ErrChanged: the schedule or the settings have changed since the caller has read
	// them. Read them again.
	ErrChanged = errors.New("queue: it has been changed since it was read")
	// ErrClosed: the store has been closed.
	ErrClosed = errors.New("queue: closed")
	// ErrUnavailable: the store cannot be reached, or accepts no changes at present, for
	// example because its disk is full. The change has not been made, or its result is
	// unknown.
	ErrUnavailable = errors.New("queue: the store is unavailable")
	// ErrLed: another process leads the store on a database server, so this one cannot open
	// it, or can no longer use it; the message names that process.
	ErrLed = errors.New("queue: another process leads the store")
)

// Leader is the process that leads a store on a database server.
type Leader struct {
	Name  string    // that the process has chosen
	Since time.Time // by the clock of the database server
	// Contact is what the process lets others know, such as where it serves the store. It
	// may hold a secret, and is in no message.
	Contact string
	// Left is the time until the lease of the leader ends, unless it is renewed.
	Left time.Duration
}

// LedError is the error of opening a store that another process leads. It wraps [ErrLed].
type LedError struct{ Leader }

// Error names the process, and how long it may lead.
func (e *LedError) Error() string {
	return fmt.Sprintf("%s leads since %s, and may for another %s: stop it, or wait",
		e.Name, e.Since.Format(time.RFC3339), e.Left.Round(time.Millisecond))
}

// Unwrap returns [ErrLed].
func (e *LedError) Unwrap() error { return ErrLed }

// PartialError is the error of a call that returns a part of what it was asked for, because some
// groups of queues do not answer; see [Group]. What the call returns besides is what the other groups
// have. PartialError wraps [ErrUnavailable].
type PartialError struct {
	Missing []MissingGroup
}

// MissingGroup is a group that does not answer.
type MissingGroup struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Error names the groups.
func (e *PartialError) Error() string {
	texts := make([]string, len(e.Missing))
	for i, g := range e.Missing {
		texts[i] = fmt.Sprintf("group %s does not answer: %s", g.Name, g.Reason)
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns [ErrUnavailable].
func (e *PartialError) Unwrap() error { return ErrUnavailable }
