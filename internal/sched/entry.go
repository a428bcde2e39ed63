package sched

import (
	"context"
	"sync"

	"github.com/stintgo/stint/internal/backlog"
)

// Tiers is the number of tiers. Tier 0 is the lowest.
const Tiers = backlog.Tiers

// Ask is what a piece of work asks for.
type Ask struct {
	Key    string // empty for none
	Weight int32  // slots
	Tier   int8
}

// plain reports whether it is one slot without a key.
func (a Ask) plain() bool { return a.Weight == 1 && a.Key == "" }

// Job is work that the engine runs in a goroutine of its own: it embeds a [Call], or is a
// function of a [Group].
type Job interface {
	// Do calls the function, and keeps the value of a call.
	Do(ctx context.Context) error
	// Forget drops the function of a call, which will not be called.
	Forget()

	run(w *worker) // calls Do for the worker's job, and does not panic
	call() *Call   // nil for a function of a group
}

// entry is one piece of work from its arrival until it releases its slots: a waiting
// goroutine, or a job with a key, several slots or a shared one. Entries belong to one
// engine and are reused. From arrival until they are recycled the engine's lock guards
// them, and their node at all times. A call may still point to an entry that has been
// reused: it reads only e, which stays the same, and, with the lock held, waits, and job
// while waits is true.
type entry struct {
	e       *Engine
	waits   bool   // it is in the queue; changes with the lock held
	permits uint64 // how many permits for it were released; changes with the lock held
	node    node   // in the policy, if the entry has a key, or its submitter is blocked; its value is the entry
	use
}

// use is the part of an entry that is reset for each use.
type use struct {
	Ask

	job   Job    // nil for a goroutine that waits
	group *Group // of a function of a group, else nil
	since int64  // arrival, by the engine's clock
	place uint64 // in the fifo of its tier, unused with a key; of a function that waits to resume, in that order

	link         *entry        // the next in a list of granted entries
	cancellation *cancellation // removes it when its context ends; set if it has a key, otherwise its item has one
	newer, older *entry        // in the cancellation's list, if it has a key

	// Of work that has slots, if the engine tracks it: see holders.
	at    int    // index in holders.all
	began int64  // when it got its slots, by the engine's clock
	first int64  // when it first got them; later than that it may have suspended them
	grant uint64 // of a shared slot
	taken bool   // by sharing.take
	lost  bool   // the shared slot may have been taken away
	task  *Task  // the function that runs on the slots

	// Of a waiting goroutine.
	ready   chan struct{}   // the goroutine continues when it receives
	err     error           // set if it gets no slot
	nested  bool            // a function that runs on a slot waits for it
	done    <-chan struct{} // of its context
	sleeps  bool            // in the shared slots, which have to rouse it: see Sleeper
	arrives *cancellation   // the cancellation of its context to queue it with, or nil
	again   bool            // the previous waiter had the same context: a cancellation would pay
	brings  *arrival        // the job of a blocked submitter
}

type node = backlog.Entry[*entry]

// queued returns how the policy sees the entry. The item of a fifo has no key.
func (x *entry) queued() backlog.Arrival {
	return backlog.Arrival{Tier: x.Tier, Key: x.Key, Weight: x.Weight}
}

// An entry without a key is its item's job in a fifo, and has a job of its own, or none.
// So these methods are never called.
func (x *entry) Do(context.Context) error { return nil }
func (x *entry) Forget()                  {}
func (x *entry) run(*worker)              {}
func (x *entry) call() *Call              { return nil }

// left reports whether the entry is a waiting goroutine whose context has ended.
func (x *entry) left() bool {
	if x.job != nil {
		return false
	}
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// entryPool has the entries of an engine that are not in use, until the garbage collector
// takes them. It needs no lock.
type entryPool struct {
	e    *Engine // immutable
	pool sync.Pool
}

// get returns an entry for work that runs at once, or for a job.
func (s *entryPool) get(a Ask) *entry {
	x, ok := s.pool.Get().(*entry)
	if !ok {
		x = &entry{e: s.e}
		x.node.Value = x
	}
	x.Ask = a
	return x
}

// waiter returns an entry for a goroutine to wait on.
func (s *entryPool) waiter(a Ask) *entry {
	x := s.get(a)
	if x.ready == nil {
		x.ready = make(chan struct{}, 1)
	}
	return x
}

// recycle puts back an entry that neither waits nor runs, unless it is the one shared by
// all plain work. The entry of a job is recycled with the lock held. The node, which is
// in no backlog any more, stays as it is: [Engine.Waiting] may read it once more, with
// the lock held.
func (x *entry) recycle() {
	if x == &x.e.plain {
		return
	}
	x.reset()
	x.e.entries.pool.Put(x)
}

// reset prepares the entry for its next use.
func (x *entry) reset() { x.use = use{ready: x.ready} }

// entryQueue is a FIFO of entries.
type entryQueue struct{ first, last *entry }

func (q *entryQueue) append(x *entry) {
	if q.first == nil {
		q.first = x
	} else {
		q.last.link = x
	}
	q.last = x
}
