package stint

import (
	"context"

	"github.com/stintgo/stint/internal/backlog"
)

// entry is one piece of work from its arrival until it gives its slot back: a
// goroutine that waits in Acquire or Run, or a job. Entries belong to one core,
// are guarded by its lock, and are used again.
type entry = backlog.Entry[work]

// work is what the scheduler keeps of an entry.
type work struct {
	job    job                         // nil for a goroutine that waits
	fn     func(context.Context) error // what a group's job runs
	since  int64                       // when it arrived, in nanoseconds since the core was made
	weight int32
	tier   int8

	link  *entry // the next in a list: of unused, posted or granted entries, or in the watch's
	newer *entry // the one before, in the watch's
	watch *watch // which context's end takes it out of the queue

	*rare // nil for a job that needs nothing of it, so that a long queue of jobs is small
}

// rare is what only some entries need. It stays with the entry.
type rare struct {
	key   string
	ready chan struct{} // a waiting goroutine goes on when it receives here,
	err   error         // without a slot if this is set
	grant Grant         // of Slots,
	lost  bool          // which may have been taken away
	task  *task         // and the function that runs on it

	brings *entry // the job of a submitter that waits at the door
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
	if c.free.n == 0 {
		c.free.adopt(c.handedIn.Swap(nil))
	}
	e := c.free.pop()
	e.Value.weight, e.Value.tier = s.weight, int8(tier)
	if s.key != "" {
		e.Value.more().key = s.key
	}
	if c.slots != nil {
		e.Value.more()
	}
	return e
}

// recycle takes back an entry that is neither queued nor runs, without the
// lock: it waits on a stack of its own until the others have been used.
func (c *core) recycle(e *entry) {
	e.Value.reset()
	for {
		e.Value.link = c.handedIn.Load()
		if c.handedIn.CompareAndSwap(e.Value.link, e) {
			return
		}
	}
}

func (c *core) recycleLocked(e *entry) {
	e.Value.reset()
	c.free.push(e)
}

func (w *work) reset() {
	w.job, w.fn = nil, nil
	if w.rare != nil {
		*w.rare = rare{ready: w.ready}
	}
}

// receiver readies the entry for a goroutine to wait on.
func (w *work) receiver() {
	if w.more().ready == nil {
		w.ready = make(chan struct{}, 1)
	}
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

// adopt pushes a list of entries.
func (l *entryList) adopt(e *entry) {
	for e != nil {
		following := e.Value.link
		l.push(e)
		e = following
	}
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
