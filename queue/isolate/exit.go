package isolate

import (
	"fmt"
	"strings"
	"syscall"
)

// Limit names a limit of a [Config], or what else ended an attempt from outside.
type Limit string

// What ends the processes of an attempt.
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
	Signal syscall.Signal `json:"signal,omitempty"` // that ended it
	Limit  Limit          `json:"limit,omitempty"`  // that they were ended for
	Output int64          `json:"output_bytes"`     // that were written
	Lost   string         `json:"lost,omitempty"`   // why the log has not all of that
}

// Exit statuses that stand for something else, as shells and timeout(1) have
// them.
const (
	statusTime      = 124
	statusCannotRun = 126
	statusNotFound  = 127
	statusSignal    = 128 // and the signal's number
)

// Code is the exit status that a shell would show: 124 if the time was over, and
// 128 and the number of the signal for a signal.
func (e Exit) Code() int {
	switch {
	case e.Limit == LimitTime:
		return statusTime
	case e.Signal != 0:
		return statusSignal + int(e.Signal)
	default:
		return e.Status
	}
}

// ExitError is an attempt that failed because of how its processes ended.
type ExitError struct {
	Exit
	Tail string // the end of the output, at most 16 KiB
	why  string // in words, where Exit does not say all
}

// Error says how they ended, and shows what their output says about it.
func (e *ExitError) Error() string {
	text := e.how()
	if lines := telling(e.Tail); lines != "" {
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

// tellingLinesMax is how many lines of output an error shows.
const tellingLinesMax = 10

// telling returns the lines of an output that say most about its end: the last
// ones, or those where a Go program says why it ends, which the stacks follow.
func telling(text string) string {
	text = strings.TrimRight(strings.ToValidUTF8(text, "\uFFFD"), " \t\r\n")
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return strings.Join(lines[i:min(i+tellingLinesMax, len(lines))], "\n")
		}
	}
	return strings.Join(lines[max(len(lines)-tellingLinesMax, 0):], "\n")
}
