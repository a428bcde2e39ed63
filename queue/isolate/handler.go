package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// Handler runs tasks of a kind by calling a function, each in a new process of this
// program:
//
//	const Thumbnail queue.Kind[Picture] = "thumbnail"
//
//	thumbnails := isolate.NewHandler(Thumbnail, isolate.Config{Memory: 512 << 20}, makeThumbnail)
//	isolate.Main(thumbnails)
//	…
//	thumbnails.Handle(q)
type Handler[T any] struct {
	kind queue.Kind[T]
	cfg  Config
	fn   func(context.Context, *queue.Job[T]) error
}

// NewHandler returns a handler of a kind that calls fn. A program has at most one Handler
// of a kind; [Main] panics otherwise. The error of fn counts as [queue.Handler] says,
// including [retry.Permanent], [retry.After], [queue.Snooze] and [queue.Shortage]; other
// types of errors arrive as their text. fn gets the same job and context as in this
// process, except that the context has neither values nor a deadline, and that its cause
// is context.Canceled if package queue has no error for it.
// In the process of the handler, the memory limit of the Go runtime is 9/10 of cfg.Memory.
//
// NewHandler panics if cfg is not valid or fn is nil.
func NewHandler[T any](kind queue.Kind[T], cfg Config, fn func(context.Context, *queue.Job[T]) error) *Handler[T] {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	if fn == nil {
		panic(fmt.Sprintf("isolate: the function of the handler of %q is nil", kind))
	}
	return &Handler[T]{kind, cfg.withDefaults(), fn}
}

// Handle sets the handler of its kind for the Runs of q; see [queue.Queue.Handle].
func (h *Handler[T]) Handle(q *queue.Queue) { q.Handle(string(h.kind), h.Run) }

// Run is a [queue.Handler] that runs a task in a new process. It panics if [Main] has not
// been called with this handler.
func (h *Handler[T]) Run(ctx context.Context, a *queue.Attempt) error {
	if known := handlersOfMain(); known[string(h.kind)] != AnyHandler(h) {
		panic(fmt.Sprintf("isolate: call isolate.Main first in the main function, with the handler of %q", h.kind))
	}
	returned, err := h.cfg.runHandler(ctx, string(h.kind), a, func(said *answer) error { return apply(a, said) })
	if err != nil {
		return err
	}
	return returned.err()
}

// apply makes the reports of an answer on the attempt in this process.
func apply(a *queue.Attempt, said *answer) error {
	if said.Progress != (queue.Progress{}) {
		a.Report(said.Progress)
	}
	if said.Saved {
		a.Save(said.Checkpoint)
	}
	if len(said.Result) > 0 {
		return a.Return(said.Result)
	}
	return nil
}

// AnyHandler is a *Handler[T] of any T. Only [Handler] implements it.
type AnyHandler interface {
	key() string
	do(ctx context.Context, a *queue.Attempt, syncs <-chan struct{}, send func(answer) error) error
}

func (h *Handler[T]) key() string { return string(h.kind) }

// reportEvery is the interval at which a process sends what its handler has reported.
const reportEvery = 50 * time.Millisecond

// do runs an attempt in this process, and sends what the handler reports and returns. syncs
// signals that the handler waits until the store has its checkpoints. The error is one of send.
func (h *Handler[T]) do(ctx context.Context, a *queue.Attempt, syncs <-chan struct{}, send func(answer) error) error {
	var args T
	if err := json.Unmarshal(a.Payload, &args); err != nil && len(a.Payload) > 0 {
		err = retry.Permanent(fmt.Errorf("payload of a task of kind %q: %w", a.Kind, err))
		return send(answer{Done: newReturned(err)})
	}
	j := &queue.Job[T]{Attempt: a, Args: args}
	ended := make(chan struct{})
	var err error
	go func() { // so that runtime.Goexit in the handler ends only this goroutine
		defer close(ended)
		err = errors.New("the handler called runtime.Goexit")
		err = protect(ctx, h.fn, j)
	}()
	var sent queue.Reported
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if report, changed := changes(&sent, j.Reported()); changed {
				if err := send(report); err != nil {
					return err
				}
			}
		case <-syncs:
			report, _ := changes(&sent, j.Reported())
			report.Sync = sent.Saved
			if err := send(report); err != nil {
				return err
			}
		case <-ended:
			last, _ := changes(&sent, j.Reported())
			last.Done = newReturned(err)
			return send(last)
		}
	}
}

// protect calls fn and returns its error; a panic becomes an error with its stack.
func protect[T any](ctx context.Context, fn func(context.Context, *queue.Job[T]) error, j *queue.Job[T]) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n\n%s", v, debug.Stack())
		}
	}()
	return fn(ctx, j)
}

// changes returns an answer with the parts of r that differ from sent, and whether there
// are any. It sets sent to r.
func changes(sent *queue.Reported, r queue.Reported) (a answer, changed bool) {
	if r.Progress != sent.Progress {
		a.Progress, changed = r.Progress, true
	}
	if r.Saved != sent.Saved {
		a.Checkpoint, a.Saved, changed = r.Checkpoint, true, true
	}
	if string(r.Result) != string(sent.Result) {
		a.Result, changed = r.Result, true
	}
	*sent = r
	return a, changed
}

// receive reads answers and calls apply with each, up to and including the one that has
// what the handler returned.
func receive(r io.Reader, apply func(*answer) error) (*returned, error) {
	for {
		var a answer
		if err := readFrame(r, &a); err != nil {
			return nil, err
		}
		if err := apply(&a); err != nil {
			return nil, fmt.Errorf("%w: %w", errFrame, err)
		}
		if a.Done != nil {
			return a.Done, nil
		}
	}
}
