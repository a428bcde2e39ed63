package csync_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/internal/seeded"
)

var errLeft = errors.New("left the queue")

// entry is a call in the model. Its kind is the weight of a semaphore's call; of
// an RWMutex's call it is reader or writer.
type entry struct {
	id, kind int

	// For the bounds of an RWMutex: the writers that were there first, and the
	// writers and the phases of reading that have been admitted since.
	writersAhead, writersPassed, phasesPassed int
}

// lockModel is what a lock with a queue must do, written to be obviously right:
// two slices, and one rule that is asked again after every change until it has
// no more to admit.
type lockModel struct {
	held, queue []entry
	// next returns the place in the queue of the one to be admitted now, or -1.
	next func(m *lockModel, afterWriter bool) int
	// bound, if set, returns an error where an entry has waited for too many.
	bound func(e entry) error
	err   error // what bound has found
}

func (m *lockModel) settle(afterWriter bool) {
	var batch []entry
	for i := m.next(m, afterWriter); i >= 0; i = m.next(m, afterWriter) {
		batch = append(batch, m.queue[i])
		m.held = append(m.held, m.queue[i])
		m.queue = slices.Delete(m.queue, i, i+1)
	}
	m.countPassed(batch)
}

// countPassed counts for all waiters that batch has gone before them, and checks the
// bound of the entries of batch.
func (m *lockModel) countPassed(batch []entry) {
	for _, e := range batch {
		if m.bound != nil && m.err == nil {
			m.err = m.bound(e)
		}
	}
	for i := range m.queue {
		switch e := &m.queue[i]; {
		case len(batch) > 0 && isWriter(batch[0]):
			e.writersPassed++
		case len(batch) > 0:
			e.phasesPassed++
		}
	}
}

func (m *lockModel) ask(e entry) {
	for _, other := range slices.Concat(m.held, m.queue) {
		if isWriter(other) {
			e.writersAhead++
		}
	}
	m.queue = append(m.queue, e)
	m.settle(false)
}

func (m *lockModel) try(e entry) bool {
	m.ask(e)
	if holds(m.held, e.id) {
		return true
	}
	m.leave(e.id)
	return false
}

func (m *lockModel) release(id int) {
	i := slices.IndexFunc(m.held, func(e entry) bool { return e.id == id })
	kind := m.held[i].kind
	m.held = slices.Delete(m.held, i, i+1)
	m.settle(kind == writer)
}

func (m *lockModel) leave(id int) {
	m.queue = slices.DeleteFunc(m.queue, func(e entry) bool { return e.id == id })
	m.settle(false)
}

func holds(entries []entry, id int) bool {
	return slices.ContainsFunc(entries, func(e entry) bool { return e.id == id })
}

// lock is the real lock under test.
type lock struct {
	acquire func(ctx context.Context, kind int) error
	try     func(kind int) bool
	release func(kind int)
	kind    func(r *rand.Rand) int // a kind to ask for
	check   func(t *testing.T, m *lockModel)
}

// call is one call of acquire that a goroutine makes.
type call struct {
	entry
	cancel context.CancelCauseFunc
	done   atomic.Bool
	err    error
}

// lockTest drives a lock and its model side by side.
type lockTest struct {
	t     *testing.T
	r     *rand.Rand
	lock  lock
	model *lockModel
	calls map[int]*call
	ids   int
}

// testLock makes random calls, and compares holders and waiters after each.
func testLock(t *testing.T, steps int, l lock, m *lockModel) {
	t.Helper()
	r := seeded.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		lt := &lockTest{t: t, r: r, lock: l, model: m, calls: map[int]*call{}}
		for range steps {
			lt.step()
			lt.compare()
		}
		for len(lt.calls) > 0 { // so that no goroutine is left
			lt.release()
			lt.compare()
		}
	})
}

func (lt *lockTest) step() {
	switch p := lt.r.IntN(100); {
	case p < 45 && len(lt.model.queue) < 20:
		lt.acquire()
	case p < 55:
		lt.try()
	case p < 80:
		lt.release()
	case p < 88:
		lt.cancel()
	case p < 92:
		lt.acquireEnded()
	case p < 96:
		lt.releaseThenCancel()
	default:
		lt.cancelThenRelease()
	}
}

func (lt *lockTest) acquire() {
	ctx, cancel := context.WithCancelCause(lt.t.Context())
	lt.ids++
	c := &call{entry: entry{id: lt.ids, kind: lt.lock.kind(lt.r)}, cancel: cancel}
	lt.calls[c.id] = c
	go func() {
		c.err = lt.lock.acquire(ctx, c.kind)
		c.done.Store(true)
	}()
	lt.model.ask(c.entry)
}

func (lt *lockTest) try() {
	lt.ids++
	c := &call{entry: entry{id: lt.ids, kind: lt.lock.kind(lt.r)}, cancel: func(error) {}}
	c.done.Store(true)
	got, want := lt.lock.try(c.kind), lt.model.try(c.entry)
	if got != want {
		lt.t.Fatalf("try(%d) = %v, want %v\nheld %v\nqueue %v", c.kind, got, want, lt.model.held, lt.model.queue)
	}
	if got {
		lt.calls[c.id] = c
	}
}

// holder and waiter pick one at random, or return nil where there is none.
func (lt *lockTest) holder() *call { return lt.pick(lt.model.held) }
func (lt *lockTest) waiter() *call { return lt.pick(lt.model.queue) }

func (lt *lockTest) pick(from []entry) *call {
	if len(from) == 0 {
		return nil
	}
	return lt.calls[from[lt.r.IntN(len(from))].id]
}

func (lt *lockTest) release() {
	if c := lt.holder(); c != nil {
		lt.lock.release(c.kind)
		lt.model.release(c.id)
		delete(lt.calls, c.id)
	}
}

func (lt *lockTest) cancel() {
	if c := lt.waiter(); c != nil {
		c.cancel(errLeft)
		lt.model.leave(c.id)
	}
}

func (lt *lockTest) acquireEnded() {
	ctx, cancel := context.WithCancelCause(lt.t.Context())
	cancel(errLeft)
	if err := lt.lock.acquire(ctx, lt.lock.kind(lt.r)); !errors.Is(err, errLeft) {
		lt.t.Fatalf("with a context that has ended: %v, want its cause", err)
	}
}

// releaseThenCancel cancels a waiter that may just have been granted. Then the
// grant counts.
func (lt *lockTest) releaseThenCancel() {
	h, w := lt.holder(), lt.waiter()
	if h == nil || w == nil {
		return
	}
	lt.lock.release(h.kind)
	w.cancel(errLeft)
	lt.model.release(h.id)
	delete(lt.calls, h.id)
	if holds(lt.model.queue, w.id) {
		lt.model.leave(w.id)
	}
}

// cancelThenRelease releases before the waiter can have noticed, or after; both
// are right, so the model follows what happened.
func (lt *lockTest) cancelThenRelease() {
	h, w := lt.holder(), lt.waiter()
	if h == nil || w == nil {
		return
	}
	w.cancel(errLeft)
	lt.lock.release(h.kind)
	synctest.Wait()
	if w.err != nil {
		lt.model.leave(w.id)
	}
	lt.model.release(h.id)
	delete(lt.calls, h.id)
	if holds(lt.model.queue, w.id) {
		lt.t.Fatalf("call %d returned %v without its turn", w.id, w.err)
	}
}

// compare waits until nothing moves any more, and checks every call.
func (lt *lockTest) compare() {
	lt.t.Helper()
	synctest.Wait()
	for id, c := range lt.calls {
		done, held, queued := c.done.Load(), holds(lt.model.held, id), holds(lt.model.queue, id)
		switch {
		case queued && done:
			lt.t.Fatalf("call %d (kind %d) returned %v, but should wait", id, c.kind, c.err)
		case held && (!done || c.err != nil):
			lt.t.Fatalf("call %d (kind %d): returned %v, %v, but should hold", id, c.kind, done, c.err)
		case !held && !queued && (!done || !errors.Is(c.err, errLeft)):
			lt.t.Fatalf("call %d (kind %d): returned %v, %v, but was cancelled", id, c.kind, done, c.err)
		case !held && !queued:
			delete(lt.calls, id)
		}
	}
	if lt.model.err != nil {
		lt.t.Fatal(lt.model.err)
	}
	if lt.lock.check != nil {
		lt.lock.check(lt.t, lt.model)
	}
}
