package sched

import (
	"context"

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

// Job is work that the engine runs in a goroutine of its own: what a [Call] is part of, or a
// function of a [Group].
type Job interface {
	// Do calls the function, and keeps the value of a call.
	Do(ctx context.Context) error
	// Forget lets go of the function of a call, which will not be called.
	Forget()

	run(w *worker) // calls Do for the worker's job, and does not panic
	call() *Call   // nil for a function of a group
}

// entry is one piece of work from its arrival until it gives its slots back: a goroutine
// that waits, or a job with a key, several slots or a shared one. Entries belong to one
// engine and are used again. From when they arrive until they are recycled, its lock
// guards them, and their node at all times. A call may still point to an entry that is used
// again: it reads no more than e, which stays, and with the lock waits, and job while that is
// true.
type entry struct {
	e       *Engine
	waits   bool   // it is in the queue; changes with the lock held
	permits uint64 // that have been given back by it; likewise
	node    node   // in the policy, if the entry has a key, or its submitter is blocked; its value is the entry
	use
}

// use is what is new each time that an entry is used.
type use struct {
	Ask

	job   Job    // nil for a goroutine that waits
	group *Group // that the job is a function of, if it is one
	since int64  // when it arrived, by the engine's clock
	place uint64 // in the fifo of its tier, if it has no key

	link         *entry        // the next in a list of granted entries
	cancellation *cancellation // whose context's end takes it out of the queue, while that is not an item's
	newer, older *entry        // in the watch's list, if it has a key

	// Of slots that it has, where that is kept: see holders.
	at    int    // where it is among them
	began int64  // when it got them, by the engine's clock,
	first int64  // and when it first did: it may have lent them since
	grant uint64 // of shared ones
	lost  bool   // they may have been taken away
	task  *Task  // the function that runs on them

	// Of a goroutine that waits.
	ready   chan struct{}   // it goes on when it receives here,
	err     error           // without a slot if this is set
	nested  bool            // it is called by a function that runs on a slot
	done    <-chan struct{} // its context's
	sleeps  bool            // in the shared slots, which are to rouse it: see Sleeper
	arrives *cancellation   // that it is to be queued with, if its context has one
	again   bool            // the one that waited before had the same context: a watch would pay
	brings  *arrival        // the job of a blocked submitter
}

type node = backlog.Entry[*entry]

// queued is how the entry is queued in the policy. Of the item of a fifo, the key is empty.
func (x *entry) queued() backlog.Arrival {
	return backlog.Arrival{Tier: int(x.Tier), Key: x.Key, Weight: int(x.Weight), Ticket: uint64(x.since)}
}

// An entry without a key is in a fifo as its item's job, and has another job, or none. So these
// are not called.

func (x *entry) Do(context.Context) error { return nil }
func (x *entry) Forget()                  {}
func (x *entry) run(*worker)              {}
func (x *entry) call() *Call              { return nil }

// left reports whether the entry is a goroutine that waits, and whose context has ended.
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

// entry returns an unused entry. It needs no lock.
func (e *Engine) entry(a Ask) *entry {
	x, ok := e.unused.Get().(*entry)
	if !ok {
		x = &entry{e: e}
		x.node.Value = x
	}
	x.Ask = a
	return x
}

// waiter returns an unused entry for a goroutine to wait on.
func (e *Engine) waiter(a Ask) *entry {
	x := e.entry(a)
	if x.ready == nil {
		x.ready = make(chan struct{}, 1)
	}
	return x
}

// recycle gives back an entry that neither waits nor runs, unless it is the one of all plain
// work. That of a job is given back with the lock held. The node, which is in no backlog any
// more, is left as it is: [Engine.Waiting] may read it once more, with the lock held.
func (x *entry) recycle() {
	if x == &x.e.plain {
		return
	}
	x.use = use{ready: x.ready}
	x.e.unused.Put(x)
}

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
