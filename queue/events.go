package queue

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Events yields every change of a task's state, of all queues and by all processes, in
// order, from the beginning of the loop until ctx ends. The end of ctx ends the loop
// without an error; a store that is closed or cannot be reached ends it with one.
//
// Each event is yielded at most once. A loop that is too slow misses events, and Missed
// of the next event is their number. A slow loop delays nothing else. The store has the
// state of every task: [Queue.Dead], [Queue.Find], and the Steps of each task.
func (q *Queue) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		over := false
		err := q.store.Watch(ctx, func() {}, func(e Event) {
			if !over && !yield(e, nil) {
				over = true
				stop()
			}
		})
		if ctx.Err() == nil {
			yield(Event{}, err)
		}
	}
}

// watch calls fn for every event until ctx ends or the store is closed. If the watch ends
// otherwise, it begins again after a pause. turned is called when the watch begins, and
// when it ends or cannot begin.
func watch(ctx context.Context, store Store, pause time.Duration, turned func(), fn func(Event)) {
	for {
		err := store.Watch(ctx, turned, fn)
		if turned(); errors.Is(err, ErrClosed) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
