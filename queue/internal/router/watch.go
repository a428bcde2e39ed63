package router

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
)

// Watch is as [queue.Store] says: the events of each group are in order. It begins when all groups
// watch; without those that fail to, or do not within 3 s, if there is another one. It ends when the
// watch of one group does, and when a group that was left out answers again.
func (s *Store) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := &watch{begun: begun, fn: fn, end: end, ready: make(chan struct{}), asked: len(s.stores)}
	late := time.AfterFunc(partWithin, w.isLate)
	defer late.Stop()
	_ = s.each(s.all(), func(g int) error {
		w.follow(ctx, s.stores[g], s.table.Name(g))
		return nil
	})
	w.mu.Lock()
	w.begins = true // from now on isLate does not call begun
	w.mu.Unlock()
	return context.Cause(ctx)
}

// watch is a call of Watch.
type watch struct {
	begun func()
	fn    func(queue.Event)
	end   context.CancelCauseFunc
	ready chan struct{} // is closed when the watch begins

	mu       sync.Mutex // guards the fields below, and the calls of begun and fn
	asked    int        // groups whose first attempt to watch has not had a result
	watching int        // groups that watch
	late     bool       // the watch does not wait for the groups in asked
	begins   bool       // begun has been called, or is not called any more
}

// watchAgain is the pause between two attempts to watch a group that does not answer.
const watchAgain = time.Second

// follow watches a group until ctx ends. The end of its watch ends all.
func (w *watch) follow(ctx context.Context, store queue.Store, name string) {
	again := time.NewTimer(watchAgain)
	defer again.Stop()
	for asked := 1; ; asked = 0 {
		watches := false
		err := store.Watch(ctx, func() {
			watches = true
			w.watches(name, asked)
		}, func(e queue.Event) { w.deliver(ctx, e) })
		if watches || !errors.Is(err, queue.ErrUnavailable) {
			w.end(err)
			return
		}
		w.fails(name, asked, err)
		again.Reset(watchAgain)
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// watches records that a group watches; asked is 1 at the first attempt.
func (w *watch) watches(name string, asked int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begins {
		w.end(fmt.Errorf("%w: group %s answers again, and its events until now were missed: watch again",
			queue.ErrUnavailable, name))
		return
	}
	w.asked -= asked
	w.watching++
	w.beginLocked()
}

// fails records that a group does not watch; asked is 1 at the first attempt.
func (w *watch) fails(name string, asked int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked -= asked; w.asked == 0 && w.watching == 0 {
		w.end(fmt.Errorf("group %s: %w", name, err))
		return
	}
	w.beginLocked()
}

// isLate ends the wait for groups that do not answer.
func (w *watch) isLate() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = true
	w.beginLocked()
}

// beginLocked begins the watch if no group has to be waited for.
func (w *watch) beginLocked() {
	if !w.begins && w.watching > 0 && (w.late || w.asked == 0) {
		w.begins = true
		w.begun()
		close(w.ready)
	}
}

// deliver passes an event of a group on, once the watch has begun.
func (w *watch) deliver(ctx context.Context, e queue.Event) {
	select {
	case <-w.ready:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fn(e)
	case <-ctx.Done():
	}
}
