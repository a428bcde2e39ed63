package isolate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stintgo/stint/queue"
)

// Config limits the processes of a task. The zero value limits only their output.
type Config struct {
	// Memory is the number of bytes that all processes of an attempt together may have
	// resident; 0 means no limit. They are measured every 50 ms, and killed if they have
	// more. A process that allocates more than twice the limit between two measurements
	// gets an error from the system (RLIMIT_DATA), and usually exits. Memory that
	// processes share counts once for each of them.
	Memory int64
	// Time is how long an attempt may take; 0 leaves only the Timeout of the task.
	Time time.Duration
	// Output is the number of bytes of an attempt's standard output and error that the
	// log receives; 0 means 1 MiB. Of a longer output the log has the beginning, a line
	// with the number of missing bytes, and the end: 64 KiB, or half of Output if that is
	// less. The end is written when the attempt is over; see [TailKeeper].
	Output int64
	// Grace is the time between the order to end and SIGKILL; 0 means 5 s.
	Grace time.Duration
	// Log opens the log that the output of an attempt is written to; it is closed when
	// the attempt is over. If Log is nil, the output is dropped except for the end that
	// an [ExitError] shows. An error of Log fails the attempt, which may be tried again;
	// an error that reports missing descriptors or a full disk is a [queue.Shortage].
	// Processes block on a slow log, but after their end the attempt waits for it for at
	// most 5 s: output that it has not accepted by then is lost, and it is closed when
	// the blocked Write returns.
	Log func(ctx context.Context, t *queue.Task) (io.WriteCloser, error)
}

// TailKeeper is an optional interface of a log of [Config]. It preserves the end of an
// output that is longer than the limit even if the worker is killed.
type TailKeeper interface {
	// KeepTail receives the text that would be written if the attempt ended now, at most
	// once a second. Each call replaces the text of the one before, and Close makes it
	// obsolete. KeepTail is not called concurrently with Write or Close.
	KeepTail(text []byte) error
}

// The defaults of a Config's fields that are 0.
const (
	DefaultOutput = 1 << 20
	DefaultGrace  = 5 * time.Second
)

// memoryMin is the memory, in bytes, that a process needs to start.
const memoryMin = 1 << 20

func (c Config) withDefaults() Config {
	if c.Output == 0 {
		c.Output = DefaultOutput
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	return c
}

// Validate reports every value that is invalid or not supported on this system. Its
// errors wrap [queue.ErrInvalid] or [errors.ErrUnsupported].
func (c Config) Validate() error {
	var errs []error
	if c.Memory != 0 && c.Memory < memoryMin {
		errs = append(errs, fmt.Errorf("%w: Memory is %d; it is 0 for no limit, or %d bytes and more",
			queue.ErrInvalid, c.Memory, memoryMin))
	}
	if c.Memory != 0 && !canLimitMemory {
		errs = append(errs, fmt.Errorf("%w: a limit on memory needs Linux; leave it out", errors.ErrUnsupported))
	}
	if c.Time < 0 || c.Output < 0 || c.Grace < 0 {
		errs = append(errs, fmt.Errorf("%w: Time is %s, Output %d and Grace %s; they are 0 for the default, or more",
			queue.ErrInvalid, c.Time, c.Output, c.Grace))
	}
	return errors.Join(errs...)
}
