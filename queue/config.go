package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stintgo/stint/internal/logthrottle"
	"github.com/stintgo/stint/retry"
)

// Config configures a [Queue]. The zero value is a good default.
type Config struct {
	// Worker is the name under which this process claims tasks. It must be different at
	// each start. The default consists of the name of the host, the process ID and a
	// random part. A second concurrent Run appends -2, a third one -3. A name is UTF-8
	// without control characters, of at most 190 bytes.
	Worker string
	// Lease is the length of a lease without a heartbeat; 0 means 30 s. Heartbeats are
	// at least three times as frequent, so it does not limit how long a task runs. It is how long
	// a task waits after its worker has died.
	Lease time.Duration
	// Retry is the policy for the delay before the next attempt of a task that has
	// failed. Its Attempts are ignored, since each task has MaxAttempts. The default is
	// [retry.TaskPolicy].
	Retry retry.Policy
	// Poll is the interval at which this process looks for work without a signal; 0
	// means 1 s.
	Poll time.Duration
	// Grace is how long a Run that is stopping waits for its handlers before it ends
	// their contexts; 0 means 30 s.
	Grace time.Duration
	// WaitDelay is how long Run waits for the handlers to return after it has ended their
	// contexts, as the field of this name in [os/exec.Cmd] does: they may have child
	// processes to end. 0 means Grace.
	WaitDelay time.Duration
	// OnEvent is called with every change of a task's state, and OnDead with every dead
	// letter, of the queues that this process runs, also of changes by other processes.
	// An event is delivered at most once: none is delivered while Run does not run or
	// the store cannot be reached, and some are dropped if a hook is slow, which a later
	// event (Missed) or, for OnDead, the Logger reports. The calls of a hook come one after
	// the other, and delay no task. With a hook, Run claims nothing until the store has
	// confirmed that it sends events, or for one Lease at most. At its end Run delivers
	// the last outcomes: after Grace it ends the contexts of hooks and logs what was not
	// delivered, and after WaitDelay it returns an error if a call of a hook has not
	// returned. A panic of a hook is logged, and so is runtime.Goexit.
	OnEvent func(context.Context, Event)
	OnDead  func(context.Context, Task)
	// Logger receives the problems that need a person's attention; nil discards them. An
	// error that repeats is logged once, and then once a minute with the number of
	// repetitions.
	Logger *slog.Logger
	// Random makes IDs and delays random; nil is [rand.Uint64]. It is called by one
	// goroutine at a time.
	Random func() uint64
}

func (c Config) withDefaults() Config {
	if c.Worker == "" {
		c.Worker = workerName()
	}
	if c.Lease == 0 {
		c.Lease = 30 * time.Second
	}
	if c.Retry == (retry.Policy{}) {
		c.Retry = retry.TaskPolicy()
	}
	if c.Poll == 0 {
		c.Poll = time.Second
	}
	if c.Grace == 0 {
		c.Grace = 30 * time.Second
	}
	if c.WaitDelay == 0 {
		c.WaitDelay = c.Grace
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = slog.New(logthrottle.New(c.Logger.Handler()))
	if c.Random == nil {
		c.Random = rand.Uint64
	} else {
		c.Random = oneByOne(c.Random)
	}
	return c
}

// workerMost limits the bytes of [Config.Worker], and leaves room for the number of a Run.
const workerMost = MaxName - 10

func (c Config) validate() error {
	var errs []error
	const least = time.Millisecond
	if c.Lease != 0 && c.Lease < least || c.Poll != 0 && c.Poll < least || min(c.Grace, c.WaitDelay) < 0 {
		errs = append(errs, fmt.Errorf("%w: Lease is %s, Poll %s, Grace %s and WaitDelay %s; they are 0 for the default, "+
			"or 1 ms and more", ErrInvalid, c.Lease, c.Poll, c.Grace, c.WaitDelay))
	}
	if strings.ContainsFunc(c.Worker, unicode.IsControl) || !utf8.ValidString(c.Worker) {
		errs = append(errs, fmt.Errorf("%w: Worker %q has control characters, or is not UTF-8", ErrInvalid, c.Worker))
	}
	errs = append(errs, checkLength("the name of the Worker", c.Worker, workerMost))
	if err := c.Retry.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: Retry: %w", ErrInvalid, err))
	}
	return errors.Join(errs...)
}

// workerName returns a name that no other start of a process has.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return host + "-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(rand.Uint64()>>32, 36)
}

// oneByOne is a source of random bits for concurrent callers.
func oneByOne(random func() uint64) func() uint64 {
	var mu sync.Mutex
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return random()
	}
}
