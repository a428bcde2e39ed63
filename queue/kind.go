package queue

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stintgo/stint/retry"
)

// Kind is the name of a kind of tasks, tied to the type of their payloads. Declare it
// once, where the submitters and the handler both see it:
//
//	const SendEmail queue.Kind[Email] = "email"
//
// Then a payload of another type does not compile. Payloads are stored as JSON. The T of
// tasks without a payload is struct{}. Fields and filters of kinds are strings: compare
// them with string(SendEmail).
type Kind[T any] string

// Job is an attempt at a task of a [Kind], with its payload.
type Job[T any] struct {
	*Attempt
	Args T // the payload
}

// Submit accepts one task of the kind. It is [Kind.Prepare] and [Queue.Submit], for a
// task whose ID no other task needs beforehand.
func (k Kind[T]) Submit(ctx context.Context, q *Queue, args T, o Options) (Receipt, error) {
	task, err := k.Prepare(q, args, o)
	if err != nil {
		return Receipt{}, err
	}
	receipts, err := q.Submit(ctx, task)
	if err != nil {
		return Receipt{}, err
	}
	return receipts[0], nil
}

// Prepare makes a task of the kind for [Queue.Submit], with an ID that other tasks can
// name. Errors: [ErrInvalid] if args cannot be JSON.
func (k Kind[T]) Prepare(q *Queue, args T, o Options) (NewTask, error) {
	payload, err := k.payload(args)
	if err != nil {
		return NewTask{}, err
	}
	return NewTask{ID: q.NewID(), Spec: Spec{Kind: string(k), Payload: payload, Options: o}}, nil
}

// Spec makes the part of a task that its submitter sets, for a [Schedule]. Errors:
// [ErrInvalid] if args cannot be JSON.
func (k Kind[T]) Spec(args T, o Options) (Spec, error) {
	payload, err := k.payload(args)
	if err != nil {
		return Spec{}, err
	}
	return Spec{Kind: string(k), Payload: payload, Options: o}, nil
}

func (k Kind[T]) payload(args T) ([]byte, error) {
	payload, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("%w: payload of a task of kind %q: %w", ErrInvalid, k, err)
	}
	return payload, nil
}

// Handle sets the handler of the kind for the Runs of this queue; see [Handler] for
// what fn returns. An empty payload is the zero T; one that is not JSON of a T is a
// permanent failure. Handle panics if fn is nil, and as [Queue.Handle] does.
func (k Kind[T]) Handle(q *Queue, fn func(context.Context, *Job[T]) error) {
	if fn == nil {
		panic(fmt.Sprintf("queue: the handler of the kind %q is nil", k))
	}
	q.Handle(string(k), func(ctx context.Context, a *Attempt) error {
		j := &Job[T]{Attempt: a}
		if len(a.Payload) > 0 {
			if err := json.Unmarshal(a.Payload, &j.Args); err != nil {
				return retry.Permanent(fmt.Errorf("payload of a task of kind %q: %w", k, err))
			}
		}
		return fn(ctx, j)
	})
}
