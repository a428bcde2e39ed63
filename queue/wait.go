package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Wait blocks until a task is finished and its end is durable, and returns it: [Result]
// decodes its result. A task that is dead or cancelled is finished too, which is not an error;
// it may be retried.
//
// If ctx ends first, Wait returns the task as it was last seen, and the cause. A store
// that cannot be reached is asked again until then. Other errors: [ErrNotFound], also if
// the task is forgotten meanwhile; [ErrClosed].
//
// A handler that waits keeps its slot, which may be the last one that the other task
// needs. Submit a task that comes After the other one instead.
func (q *Queue) Wait(ctx context.Context, id ID) (Task, error) {
	news := q.followers.add(id) //nolint:contextcheck // the watch is shared with other callers
	defer q.followers.remove(id, news)
	// The watch may end without an error, so the task is also read without an event,
	// soon if the store could not be reached.
	const first = time.Millisecond
	again := time.NewTimer(first)
	defer again.Stop()
	var last Task
	for wait := first; ; wait = min(2*wait, q.cfg.Poll) {
		task, err := readTask(ctx, q.store, id, Page{Durable: true})
		switch {
		case err == nil && task.State.Finished():
			return task, nil
		case err == nil:
			last, wait = task, q.cfg.Poll
		case !errors.Is(err, ErrUnavailable) || ctx.Err() != nil:
			return last, err
		}
		again.Reset(wait)
		select {
		case <-news:
		case <-again.C:
		case <-ctx.Done():
			return last, fmt.Errorf("wait for task %s: %w", id, context.Cause(ctx))
		}
	}
}

// followers are the callers that wait for tasks to finish. They share one watch of the
// store, which lives as long as there are followers.
type followers struct {
	store Store
	pause time.Duration // the pause before a watch that has ended begins again

	mu    sync.Mutex
	by    map[ID]map[chan struct{}]struct{}
	stop  context.CancelFunc // ends the watch
	ended chan struct{}      // when it has ended
}

// add returns a channel that receives when a task may have been finished.
func (f *followers) add(id ID) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.by) == 0 {
		f.by = make(map[ID]map[chan struct{}]struct{})
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		f.stop, f.ended = stop, ended
		go func() {
			defer close(ended)
			watch(ctx, f.store, f.pause, f.notifyAll, f.notify)
		}()
	}
	if f.by[id] == nil {
		f.by[id] = make(map[chan struct{}]struct{})
	}
	news := make(chan struct{}, 1)
	f.by[id][news] = struct{}{}
	return news
}

// remove removes a channel of add. The last follower waits for the end of the watch.
func (f *followers) remove(id ID, news chan struct{}) {
	f.mu.Lock()
	if delete(f.by[id], news); len(f.by[id]) == 0 {
		delete(f.by, id)
	}
	last, stop, ended := len(f.by) == 0, f.stop, f.ended
	f.mu.Unlock()
	if last {
		stop()
		<-ended
	}
}

// notify signals the followers of the task of an event, and all followers if events were
// missed.
func (f *followers) notify(e Event) {
	if e.Missed > 0 {
		f.notifyAll()
		return
	}
	if !e.To.Finished() && e.On != OnForget {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for news := range f.by[e.ID] {
		signal(news)
	}
}

// notifyAll signals all followers, since events of their tasks may have been missed.
func (f *followers) notifyAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, waiting := range f.by {
		for news := range waiting {
			signal(news)
		}
	}
}
