package queue

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Events yields every change of a task's state, of all queues of the store and
// by whomever, in their order, from the time on at which the loop over it begins
// until ctx ends. It then ends without a word; a store that is closed or cannot be
// reached ends it with an error.
//
// Each event comes once or, if the loop is too slow for the store, not at all;
// the next one's Missed says how many did not. A slow loop holds nothing up. What
// must not be missed is in the store: [Queue.Dead], [Queue.Find], and the Steps of
// each task.
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

// watch calls fn for every event until ctx ends or the store is closed. Whenever
// the watch breaks off otherwise, it begins again after a pause. turned is called
// when it begins, and when it ends or cannot begin.
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
