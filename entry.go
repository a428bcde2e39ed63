package stint

import (
	"context"

	"github.com/stintgo/stint/internal/backlog"
)

// entry is one piece of work from its arrival until it gives its slot back: a
// goroutine that waits in Acquire or Run, or a job. Entries belong to one core
// and are used again. From when they arrive until they are recycled, its lock
// guards them.
type entry = backlog.Entry[work]

// work is what the scheduler keeps of an entry.
type work struct {
	job    job                         // nil for a goroutine that waits
	fn     func(context.Context) error // what a group's job runs
	since  int64                       // when it arrived, in nanoseconds since the core was made
	weight int32
	tier   int8

	link  *entry // the next in a list: of unused or granted entries, in the mail, or in the watch's
	newer *entry // the one before, in the watch's
	watch *watch // which context's end takes it out of the queue

	*rare // nil for a job that needs nothing of it, so that a long queue of jobs is small
}

// rare is what only some entries need. It stays with the entry.
type rare struct {
	key   string
	grant Grant // of Slots,
	lost  bool  // which may have been taken away,
	loose bool  // and which Acquire does not keep: see grants
	task  *task // and the function that runs on it

	// Of a goroutine that waits.
	ready  chan struct{}   // it goes on when it receives here,
	err    error           // without a slot if this is set
	nested bool            // it is called by a function that runs on a slot
	done   <-chan struct{} // its context's
	sleeps bool            // in Slots, which are to rouse it: see Sleeper
	again  bool            // the one that waited before had the same context: a watch would pay

	brings *entry // the job of a submitter that waits at the door
}

// left reports whether the entry is a goroutine that waits, and whose context has ended.
func (w *work) left() bool {
	if w.job != nil || w.rare == nil {
		return false
	}
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *work) keyName() string {
	if w.rare == nil {
		return ""
	}
	return w.key
}

func (w *work) refusal() error {
	if w.rare == nil {
		return nil
	}
	return w.err
}

func (w *work) more() *rare {
	if w.rare == nil {
		w.rare = new(rare)
	}
	return w.rare
}

// job is work that the scheduler runs in a goroutine of its own.
type job interface {
	// place tells the job its entry, before it is queued or runs.
	place(e *entry)
	// run calls the function and keeps its outcome. It does not panic.
	run(w *worker, e *entry)
	// settle publishes the outcome, after the slot has been given back.
	settle()
	// refuse publishes err instead: the job will not run.
	refuse(err error)
}

// entry returns an unused entry for s. The lock is held.
func (c *core) entry(s Scheduler, tier int) *entry {
	var e *entry
	if s.key == "" && c.slots == nil {
		e = c.free.pop()
	} else {
		e = c.rareEntry()
		e.Value.key = s.key
	}
	e.Value.weight, e.Value.tier = s.weight, int8(tier)
	return e
}

// waiter returns an unused entry for a goroutine to wait on. It needs no lock.
func (c *core) waiter(s Scheduler, tier int) *entry {
	e := c.rareEntry()
	e.Value.key, e.Value.weight, e.Value.tier = s.key, s.weight, int8(tier)
	if e.Value.ready == nil {
		e.Value.ready = make(chan struct{}, 1)
	}
	return e
}

func (c *core) rareEntry() *entry {
	if e, ok := c.rares.Get().(*entry); ok {
		return e
	}
	both := new(struct {
		e entry
		r rare
	})
	both.e.Value.rare = &both.r
	return &both.e
}

// recycle takes back an entry that is neither queued nor runs. The lock is
// held.
func (c *core) recycle(e *entry) {
	if e.Value.rare != nil {
		c.recycleRare(e)
		return
	}
	e.Value.job, e.Value.fn = nil, nil
	c.free.push(e)
}

// recycleRare is recycle for an entry that has a rare. It needs no lock.
func (c *core) recycleRare(e *entry) {
	e.Value.job, e.Value.fn = nil, nil
	*e.Value.rare = rare{ready: e.Value.ready}
	c.rares.Put(e)
}

const (
	entryChunk = 68   // entries are allocated by the chunk, which is just below 8 KiB,
	maxFree    = 4096 // and kept for use again up to this number
)

// entryList is a stack of unused entries.
type entryList struct {
	first *entry
	n     int
}

// pop takes an entry, of a new chunk if there is none.
func (l *entryList) pop() *entry {
	if l.n == 0 {
		chunk := make([]entry, entryChunk)
		for i := range chunk {
			l.push(&chunk[i])
		}
	}
	e := l.first
	l.first, e.Value.link = e.Value.link, nil
	l.n--
	return e
}

// push puts an entry on the stack, or leaves it to the garbage collector.
func (l *entryList) push(e *entry) {
	if l.n >= maxFree {
		return
	}
	e.Value.link = l.first
	l.first = e
	l.n++
}

// entryQueue is a FIFO of entries.
type entryQueue struct{ first, last *entry }

func (q *entryQueue) append(e *entry) {
	if q.first == nil {
		q.first = e
	} else {
		q.last.Value.link = e
	}
	q.last = e
}

// take empties the queue and returns its first entry, which links to the rest.
func (q *entryQueue) take() *entry {
	first := q.first
	*q = entryQueue{}
	return first
}
