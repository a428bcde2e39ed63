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
	submissions *machine.TxSubmissions
	outcomes    *machine.TxOutcomes
	now         func() time.Time // by the clock of the database
	log         *slog.Logger
	check       func(queueName string) error // why a queue takes no tasks here; nil if it does
	refused     map[string]time.Time         // when to try again, by key
	waiting     map[string]string            // the full queues that submissions wait for, by key
	useful      bool                         // the present look has accepted something
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
		b.settle(ctx)
		b.submit(ctx)
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

// settle settles the attempts whose outcomes have been committed.
func (b *inbox) settle(ctx context.Context) {
	for after := ""; ; {
		keys, err := b.outcomes.Keys(after, inboxPage)
		for rest := keys; err == nil && len(rest) > 0; {
			var answers []error
			answers, err = b.outcomes.Accept(ctx, b.now(), rest)
			for i, answer := range answers {
				b.useful = b.useful || err == nil && answer == nil
				accepted(b.log, answer, rest[i])
			}
			rest = rest[len(answers):]
		}
		if err != nil || len(keys) < inboxPage { // the rows log what fails
			return
		}
		after = keys[len(keys)-1]
	}
}

// accepted logs why an outcome of a transaction does not count.
func accepted(log *slog.Logger, err error, key string) {
	if errors.Is(err, queue.ErrStale) || errors.Is(err, queue.ErrInvalid) {
		log.Error("the outcome of a transaction does not count: the attempt had been settled before, or the database "+
			"has lost changes", slog.String("key", fmt.Sprintf(`\x%x`, key)), slog.Any("error", err))
	}
}

// submit accepts tasks. It looks at all submissions, because any number of the first ones
// may wait for room in a full queue. For each full queue it tries the oldest waiting submission,
// and the later ones if the oldest was accepted.
func (b *inbox) submit(ctx context.Context) {
	present, after := make(map[string]bool), ""
	full, tried := make(map[string]bool), make(map[string]bool) // by queue
	for {
		keys, err := b.submissions.Keys(after, inboxPage)
		if err != nil {
			return // the rows log what fails
		}
		var next []string
		for _, key := range keys {
			present[key] = true
			of := b.waiting[key]
			switch again, refused := b.refused[key]; {
			case refused && b.now().Before(again), full[of]:
			case of == "" || tried[of]:
				next = append(next, key)
			default: // after those before it
				if !b.accept(ctx, next, full) || !b.accept(ctx, []string{key}, full) {
					return
				}
				next, tried[of] = nil, true
			}
		}
		if !b.accept(ctx, next, full) {
			return
		}
		if len(keys) < inboxPage {
			break
		}
		after = keys[len(keys)-1]
	}
	maps.DeleteFunc(b.refused, func(key string, _ time.Time) bool { return !present[key] })
	maps.DeleteFunc(b.waiting, func(key, _ string) bool { return !present[key] })
}

// accept accepts submissions, and adds the queues that are full to full. It reports whether it has
// an answer for each submission.
func (b *inbox) accept(ctx context.Context, keys []string, full map[string]bool) bool {
	for len(keys) > 0 {
		answers, err := b.submissions.Accept(ctx, b.now(), keys, full, b.check)
		if err != nil {
			return false // the rows log what fails
		}
		for i, answer := range answers {
			b.answered(keys[i], answer)
		}
		keys = keys[len(answers):]
	}
	return true
}

// answered records whether a submission was accepted.
func (b *inbox) answered(key string, err error) {
	if of, ok := errors.AsType[*machine.FullError](err); ok {
		b.waiting[key] = of.Queue
	} else {
		delete(b.waiting, key)
	}
	b.useful = b.useful || err == nil
	switch {
	case err == nil, errors.Is(err, queue.ErrUnavailable), errors.Is(err, queue.ErrClosed), errors.Is(err, queue.ErrFull):
		delete(b.refused, key)
		return
	case b.refused[key].IsZero():
		b.log.Error("tasks that a transaction has submitted are refused: remove the row of this key, or make it possible "+
			"to accept them", slog.String("key", fmt.Sprintf(`\x%x`, key)), slog.Any("error", err))
	}
	b.refused[key] = b.now().Add(refusedEvery)
}
