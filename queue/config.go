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

	"github.com/stintgo/stint/internal/logthrottle"
	"github.com/stintgo/stint/retry"
)

// Config is how a [Queue] works. The zero value is a good default.
type Config struct {
	// Worker is the name under which this process claims tasks. It must be new at
	// each start; it is made of the host's name, the process and chance if it is
	// empty. A second Run at the same time has -2 behind it, a third one -3. It has no
	// control characters, and at most 200 bytes with that number.
	Worker string
	// Lease is how long a task is this process's without a sign of life: 30 s if
	// it is 0. It has nothing to do with how long the work takes, because leases
	// are extended three times as often; it is how long a task waits whose worker
	// has died.
	Lease time.Duration
	// Retry says when a task that has failed is tried again; its Attempts are not
	// used, since each task has its own. Unset is [retry.TaskPolicy].
	Retry retry.Policy
	// Poll is the interval in which this process looks for work of which it got no signal:
	// 1 s if it is 0.
	Poll time.Duration
	// Grace is how long handlers have to end by themselves when Run is to return,
	// before their contexts end: 30 s if it is 0.
	Grace time.Duration
	// Linger is how long Run then waits for handlers whose contexts have ended: as
	// long as Grace if it is 0. It is for those that need time to end what they have
	// begun, such as processes that are asked first.
	Linger time.Duration
	// OnEvent is called with every change of the state of a task, and OnDead with
	// every dead letter, of the queues that this process runs, whichever process made it
	// one. An event is delivered once or not at all: none while Run does not run or the store
	// cannot be reached, and some are dropped if a hook is slow, which a later event
	// (Missed) or, for OnDead, the Logger reports. Each hook is called by one goroutine,
	// and delays no task; but with a hook, Run claims nothing until the store has
	// confirmed that it sends events, or for one Lease at most. At its end, Run delivers
	// the last outcomes: after Grace the contexts of hooks end and the Logger reports what
	// is left, and after Linger Run returns an error if a call has not returned. A panic
	// is logged.
	OnEvent func(context.Context, Event)
	OnDead  func(context.Context, Task)
	// Logger receives what needs a person's attention; nil discards it. An error that
	// repeats is logged once, and then once a minute with how often it did.
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
	if c.Linger == 0 {
		c.Linger = c.Grace
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

func (c Config) validate() error {
	var errs []error
	const least = time.Millisecond
	if c.Lease != 0 && c.Lease < least || c.Poll != 0 && c.Poll < least || min(c.Grace, c.Linger) < 0 {
		errs = append(errs, fmt.Errorf("%w: Lease is %s, Poll %s, Grace %s and Linger %s; they are 0 for the default, "+
			"or 1 ms and more", ErrInvalid, c.Lease, c.Poll, c.Grace, c.Linger))
	}
	if strings.ContainsFunc(c.Worker, unicode.IsControl) {
		errs = append(errs, fmt.Errorf("%w: Worker %q has control characters", ErrInvalid, c.Worker))
	}
	if err := c.Retry.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("%w: Retry: %w", ErrInvalid, err))
	}
	return errors.Join(errs...)
}

// workerName is a name that no other start of a process has.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	return host + "-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(rand.Uint64()>>32, 36)
}

// oneByOne is a source of random bits for any number of goroutines.
func oneByOne(random func() uint64) func() uint64 {
	var mu sync.Mutex
	return func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return random()
	}
}
