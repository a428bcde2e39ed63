package isolate

import (
	"fmt"
	"strings"
	"syscall"

	"github.com/stintgo/stint/internal/proc"
)

// Limit names the limit of a [Config], or the other outside cause, that ended an attempt.
type Limit string

// The outside causes that end the processes of an attempt.
const (
	LimitMemory Limit = "memory" // they had more than Config.Memory
	LimitTime   Limit = "time"   // Config.Time was over, or the Timeout of the task
	// LimitTask: the task's context ended for another reason: a pause, a cancel, the
	// end of the worker or of the lease.
	LimitTask Limit = "task"
)

// Exit is how the processes of an attempt ended.
type Exit struct {
	Status int            `json:"status"`           // of the first process; 0 if a signal ended it
	Signal syscall.Signal `json:"signal,omitempty"` // the signal that ended the first process
	Limit  Limit          `json:"limit,omitempty"`  // why the processes were ended from outside
	Output int64          `json:"output_bytes"`     // bytes that the processes wrote
	Lost   string         `json:"lost,omitempty"`   // why the log lacks a part of the output
}

// Code returns the exit status that a shell would show: 124 after the time limit, as
// timeout(1) has it, and 128 plus the number of the signal after a signal.
func (e Exit) Code() int {
	switch {
	case e.Limit == LimitTime:
		return proc.ExitTimeout
	case e.Signal != 0:
		return proc.ExitSignal + int(e.Signal)
	default:
		return e.Status
	}
}

// ExitError is the error of an attempt that failed because of how its processes ended.
type ExitError struct {
	Exit
	Tail string // the end of the output, at most 16 KiB
	why  string // replaces the description of Exit where that lacks something; may be empty
}

// Error describes how the processes ended, followed by the lines of their output that
// most likely say why.
func (e *ExitError) Error() string {
	text := e.how()
	if lines := relevantLines(e.Tail); lines != "" {
		text += "\n" + lines
	}
	return text
}

func (e *ExitError) how() string {
	switch {
	case e.why != "":
		return e.why
	case e.Signal != 0:
		return fmt.Sprintf("ended by a signal: %v", e.Signal)
	default:
		return fmt.Sprintf("exit status %d", e.Status)
	}
}

// errorLinesMax is the number of lines of output in an error.
const errorLinesMax = 10

// relevantLines returns the lines of an output that describe its end best: the last ones,
// or, if a Go program panicked, the panic message and the first lines of the stacks.
func relevantLines(text string) string {
	text = strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), " \t\r\n")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return strings.Join(lines[i:min(i+errorLinesMax, len(lines))], "\n")
		}
	}
	return strings.Join(lines[max(len(lines)-errorLinesMax, 0):], "\n")
}
