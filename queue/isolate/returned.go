package isolate

import (
	"context"
	"errors"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// newReturned is what a handler returned, as it is told.
func newReturned(err error) *returned {
	if err == nil {
		return &returned{}
	}
	r := &returned{Failed: true, Error: err.Error(), Permanent: retry.IsPermanent(err)}
	if delay, ok := queue.SnoozeDelay(err); ok {
		r.Snooze = &delay
	}
	if delay, ok := retry.Delay(err); ok {
		r.After = &delay
	}
	return r
}

// err is what the handler returned, as far as a queue looks at it.
func (r *returned) err() error {
	if !r.Failed {
		return nil
	}
	if r.Snooze != nil {
		return queue.Snooze(*r.Snooze)
	}
	err := errors.New(r.Error)
	if r.After != nil {
		err = retry.After(*r.After, err)
	}
	if r.Permanent {
		err = retry.Permanent(err)
	}
	return err
}

// cause names why a context ended.
type cause string

// causeNames are the causes that handlers know, and their names on the way.
var causeNames = map[cause]error{
	"paused": queue.ErrPaused, "cancelled": queue.ErrCancelled, "stale": queue.ErrStale, "stopping": queue.ErrStopping,
	"deadline": context.DeadlineExceeded, "time": errTime,
}

// causeOther is any other cause.
const causeOther cause = "other"

// causeStopping is the cause of one whose worker is gone.
const causeStopping cause = "stopping"

// errTime ends a handler's context when [Config.Time] is over.
var errTime = errors.New("isolate: the time limit is over")

// newCause is a cause, as it is told.
func newCause(err error) cause {
	for name, known := range causeNames {
		if errors.Is(err, known) {
			return name
		}
	}
	return causeOther
}

// err is the cause again.
func (c cause) err() error {
	if err := causeNames[c]; err != nil {
		return err
	}
	return context.Canceled
}
