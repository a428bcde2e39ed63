package isolate

import (
	"context"
	"errors"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// newReturned returns the wire form of a handler's error.
func newReturned(err error) *returned {
	if err == nil {
		return &returned{}
	}
	r := &returned{
		Failed: true, Error: err.Error(), Permanent: retry.IsPermanent(err), Shortage: queue.IsShortage(err),
	}
	if delay, ok := queue.SnoozeDelay(err); ok {
		r.Snooze = &delay
	}
	if delay, ok := retry.Delay(err); ok {
		r.After = &delay
	}
	return r
}

// err returns the handler's error with the properties that a queue acts on.
func (r *returned) err() error {
	if !r.Failed {
		return nil
	}
	err := errors.New(r.Error)
	if r.Snooze != nil {
		err = queue.Snooze(*r.Snooze)
	}
	if r.After != nil {
		err = retry.After(*r.After, err)
	}
	if r.Permanent {
		err = retry.Permanent(err)
	}
	if r.Shortage {
		err = queue.Shortage(err)
	}
	return err
}

// cause is the wire form of the cause of a context.
type cause string

// causeNames are the causes that a handler can distinguish, by their wire form.
var causeNames = map[cause]error{
	"paused": queue.ErrPaused, "cancelled": queue.ErrCancelled, "stale": queue.ErrStale, "stopping": queue.ErrStopping,
	"too large": queue.ErrTooLarge, "deadline": context.DeadlineExceeded, "time": errTime,
}

// causeOther is every cause that is not in causeNames.
const causeOther cause = "other"

// causeStopping is also the cause for a handler whose worker has ended.
const causeStopping cause = "stopping"

// errTime is the cause of a handler's context when [Config.Time] is over.
var errTime = errors.New("isolate: the time limit is over")

// newCause returns the wire form of err.
func newCause(err error) cause {
	for name, known := range causeNames {
		if errors.Is(err, known) {
			return name
		}
	}
	return causeOther
}

// err returns the cause as an error; causeOther becomes [context.Canceled].
func (c cause) err() error {
	if err := causeNames[c]; err != nil {
		return err
	}
	return context.Canceled
}
