package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

const (
	// inboxEvery is the interval at which the leader looks for rows of transactions. It is
	// longer if a look that accepts nothing takes long: such looks take at most a fifth of the
	// time.
	inboxEvery = 100 * time.Millisecond
	inboxShare = 4
	// inboxPage is how many keys the leader reads at a time.
	inboxPage = 1000
	// refusedEvery is the time after which it tries a submission again that was refused.
	refusedEvery = time.Minute
)

// inbox accepts tasks and outcomes of transactions until ctx ends. Its fields are used by one
// goroutine.
type inbox struct {
	machine *machine.Machine
	now     func() time.Time // by the clock of the database
	log     *slog.Logger
	refused map[string]time.Time // when to try again, by key
	waiting map[string]string    // the full queues that submissions wait for, by key
	useful  bool                 // the present look has accepted something
}

func (b *inbox) run(ctx context.Context) {
	next := time.NewTimer(inboxEvery)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		began := clock.Now()
		b.useful = false
		b.outcomes(ctx)
		b.submissions(ctx)
		next.Reset(b.pause(clock.Now().Sub(began)))
	}
}

// pause returns the time until the next look, after one that took some time. The time for
// accepting does not count: each submission waits for its commit, so the pauses would grow with
// the number of submissions.
func (b *inbox) pause(took time.Duration) time.Duration {
	if b.useful {
		return inboxEvery
	}
	return max(inboxEvery, inboxShare*took)
}

// outcomes settles the attempts whose outcomes have been committed.
func (b *inbox) outcomes(ctx context.Context) {
	keys, err := b.machine.Outcomes(inboxPage)
	for i := 0; err == nil && i < len(keys) && ctx.Err() == nil; i++ { // the rows log what fails
		err := b.machine.AcceptOutcome(ctx, b.now(), keys[i])
		b.useful = b.useful || err == nil
		accepted(b.log, err, keys[i])
	}
}

// accepted logs why an outcome of a transaction does not count.
func accepted(log *slog.Logger, err error, key string) {
	if errors.Is(err, queue.ErrStale) || errors.Is(err, queue.ErrInvalid) {
		log.Error("the outcome of a transaction does not count: the attempt had been settled before, or the database "+
			"has lost changes", slog.String("key", fmt.Sprintf(`\x%x`, key)), slog.Any("error", err))
	}
}

// submissions accepts tasks. It looks at all submissions, because any number of the first ones
// may wait for room in a queue that is full; of these it tries one for each queue.
func (b *inbox) submissions(ctx context.Context) {
	present, full, after := make(map[string]bool), make(map[string]bool), ""
	for {
		keys, err := b.machine.Inbox(after, inboxPage)
		if err != nil {
			return // the rows log what fails
		}
		for _, key := range keys {
			if ctx.Err() != nil {
				return
			}
			present[key] = true
			if !full[b.waiting[key]] {
				b.accept(ctx, key, full)
			}
		}
		if len(keys) < inboxPage {
			break
		}
		after = keys[len(keys)-1]
	}
	maps.DeleteFunc(b.refused, func(key string, _ time.Time) bool { return !present[key] })
	maps.DeleteFunc(b.waiting, func(key, _ string) bool { return !present[key] })
}

// accept accepts a submission, unless it was refused a moment ago. If a queue is full, accept
// adds it to full.
func (b *inbox) accept(ctx context.Context, key string, full map[string]bool) {
	if again, ok := b.refused[key]; ok && b.now().Before(again) {
		return
	}
	err := b.machine.AcceptSubmission(ctx, b.now(), key, full)
	if of, ok := errors.AsType[*machine.FullError](err); ok {
		b.waiting[key], full[of.Queue] = of.Queue, true
	} else {
		delete(b.waiting, key)
	}
	b.useful = b.useful || err == nil
	switch {
	case err == nil, errors.Is(err, queue.ErrUnavailable), errors.Is(err, queue.ErrClosed), errors.Is(err, queue.ErrFull),
		ctx.Err() != nil:
		delete(b.refused, key)
		return
	case b.refused[key].IsZero():
		b.log.Error("tasks that a transaction has submitted are refused: remove the row of this key, or make it possible "+
			"to accept them", slog.String("key", fmt.Sprintf(`\x%x`, key)), slog.Any("error", err))
	}
	b.refused[key] = b.now().Add(refusedEvery)
}
