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

// Handler is a function that does tasks, each in a new process of this program.
// Its method Run is what a queue is given:
//
//	thumbnail := isolate.NewHandler("thumbnail", isolate.Config{Memory: 512 << 20}, makeThumbnail)
//	isolate.Main(thumbnail)
//	…
//	q.Handle("thumbnail", thumbnail.Run)
type Handler[T any] struct {
	name string
	cfg  Config
	fn   func(context.Context, *queue.Job[T]) error
}

// NewHandler returns a handler that is known to [Main] by a name of its own. What fn
// returns counts as [queue.Handler] says, also [retry.Permanent], [retry.After] and
// [queue.Snooze]; other types of errors arrive as their text. Its job and its context
// are as they would be in this process, but for the values and the deadline of the
// context. The Go runtime of the process is told of 9/10 of Memory as its goal.
//
// NewHandler panics if the configuration is not valid.
func NewHandler[T any](name string, cfg Config, fn func(context.Context, *queue.Job[T]) error) *Handler[T] {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	return &Handler[T]{name, cfg.withDefaults(), fn}
}

// Run is a [queue.Handler] that does a task in a new process. It panics if [Main]
// has not been called with this handler.
func (h *Handler[T]) Run(ctx context.Context, a *queue.Attempt) error {
	if known := handlersOfMain(); known[h.name] != isolated(h) {
		panic(fmt.Sprintf("isolate: call isolate.Main first in the main function, with the handler %q", h.name))
	}
	returned, err := h.cfg.runHandler(ctx, h.name, a, func(said *answer) error { return take(a, said) })
	if err != nil {
		return err
	}
	return returned.err()
}

// take reports what the handler has reported in its process.
func take(a *queue.Attempt, said *answer) error {
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

// isolated is a [Handler] of any type.
type isolated interface {
	key() string
	do(ctx context.Context, t *queue.Task, tell func(answer) error) error
}

func (h *Handler[T]) key() string { return h.name }

// tellEvery is how often a process tells what its handler has reported.
const tellEvery = 50 * time.Millisecond

// do does a task in this process, and tells what the handler reports and returns.
func (h *Handler[T]) do(ctx context.Context, t *queue.Task, tell func(answer) error) error {
	var args T
	if err := json.Unmarshal(t.Payload, &args); err != nil && len(t.Payload) > 0 {
		err = retry.Permanent(fmt.Errorf("payload of a task of kind %q: %w", t.Kind, err))
		return tell(answer{Done: newReturned(err)})
	}
	j := &queue.Job[T]{Attempt: queue.Detached(*t), Args: args}
	ended := make(chan struct{})
	var err error
	go func() { // of its own, which the handler may end
		defer close(ended)
		err = errors.New("the handler called runtime.Goexit")
		err = protect(ctx, h.fn, j)
	}()
	var told queue.Reported
	ticker := time.NewTicker(tellEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if a, news := news(&told, j.Reported()); news {
				if err := tell(a); err != nil {
					return err
				}
			}
		case <-ended:
			last, _ := news(&told, j.Reported())
			last.Done = newReturned(err)
			return tell(last)
		}
	}
}

// protect calls a handler, and makes an error of a panic.
func protect[T any](ctx context.Context, fn func(context.Context, *queue.Job[T]) error, j *queue.Job[T]) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n\n%s", v, debug.Stack())
		}
	}()
	return fn(ctx, j)
}

// news is what is there to be told, and whether there is anything.
func news(told *queue.Reported, r queue.Reported) (a answer, news bool) {
	if r.Progress != told.Progress {
		a.Progress, news = r.Progress, true
	}
	if r.Saved != told.Saved {
		a.Checkpoint, a.Saved, news = r.Checkpoint, true, true
	}
	if string(r.Result) != string(told.Result) {
		a.Result, news = r.Result, true
	}
	*told = r
	return a, news
}

// listen reads answers until one says what the handler returned.
func listen(r io.Reader, take func(*answer) error) (*returned, error) {
	for {
		var a answer
		if err := readFrame(r, &a); err != nil {
			return nil, err
		}
		if err := take(&a); err != nil {
			return nil, fmt.Errorf("%w: %w", errFrame, err)
		}
		if a.Done != nil {
			return a.Done, nil
		}
	}
}
