package isolate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stintgo/stint/queue"
)

// Config limits the processes of a task. The zero value limits their output
// alone.
type Config struct {
	// Memory is how many bytes all processes of an attempt may have in memory
	// together; 0 is no limit. They are looked at every 50 ms, and killed when they
	// have more. One that asks for more than twice as much in less time is refused
	// it by the system (RLIMIT_DATA), and usually ends by itself. Memory that
	// processes share counts once for each.
	Memory int64
	// Time is how long an attempt may take; 0 is no limit but the task's own
	// Timeout.
	Time time.Duration
	// Output is how many bytes are kept of what an attempt writes to its standard output
	// and error: 1 MiB if it is 0. Of more, the log has the beginning, the end, which is
	// 64 KiB or half of Output if that is less, and between them a line with the number of
	// bytes that are missing. The end is written when the attempt is over; see
	// [TailKeeper].
	Output int64
	// Grace is how long processes that were told to end have for it, before they
	// are killed: 5 s if it is 0.
	Grace time.Duration
	// Log opens what the output of an attempt is written to; nil drops it, but for
	// the end that an [ExitError] shows. It is closed when the attempt is over. An
	// error of Log is one of the attempt, which may be tried again; if it says that there
	// are no descriptors or that the disk is full, it is a [queue.Shortage]. Processes wait
	// for a log that is slow, but their end does not wait for it longer than 5 s:
	// what it has not taken by then is lost, and it is closed when it lets go.
	Log func(ctx context.Context, t *queue.Task) (io.WriteCloser, error)
}

// TailKeeper is what a log of [Config] may be as well, to have the end of an output that
// is too long also if this process is killed.
type TailKeeper interface {
	// KeepTail is given what would be written if the attempt ended now, at most once a
	// second. It replaces what it was given before, and is out of date when the log is
	// closed. It is not called while Write or Close is.
	KeepTail(text []byte) error
}

const (
	defaultOutput = 1 << 20
	defaultGrace  = 5 * time.Second
	// memoryMin is what a process needs before it does anything.
	memoryMin = 1 << 20
)

func (c Config) withDefaults() Config {
	if c.Output == 0 {
		c.Output = defaultOutput
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	return c
}

// Validate reports all that is wrong with a configuration, or cannot be had on
// this system. Its errors wrap [queue.ErrInvalid] or [errors.ErrUnsupported].
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
