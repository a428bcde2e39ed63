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
	// run calls the function and keeps its outcome. It does not panic.
	run(w *worker, e *entry)
	// settle publishes the outcome, after the slot has been given back.
	settle()
	// refuse publishes err instead: the job will not run.
	refuse(err error)
}

const (
	entryChunk = 68   // entries are allocated by the chunk, which is just below 8 KiB
	maxFree    = 4096 // and kept for use again up to this number
)

// entry returns an unused entry for s. The lock is held.
func (c *core) entry(s Scheduler, tier int) *entry {
	e := c.free
	if e == nil {
		e = newEntries()
		c.freeCount = entryChunk
	}
	c.free = e.Value.link
	c.freeCount--
	e.Value.link = nil
	e.Value.weight, e.Value.tier = s.weight, int8(tier)
	if s.key != "" {
		e.Value.more().key = s.key
	}
	if c.slots != nil {
		e.Value.more()
	}
	return e
}

// newEntries returns a list of unused entries.
func newEntries() *entry {
	chunk := make([]entry, entryChunk)
	for i := range chunk[1:] {
		chunk[i].Value.link = &chunk[i+1]
	}
	return &chunk[0]
}

// recycle takes back an entry that is neither queued nor runs.
func (c *core) recycle(e *entry) {
	if e == nil {
		return
	}
	c.mu.Lock()
	c.recycleLocked(e)
	c.mu.Unlock()
}

func (c *core) recycleLocked(e *entry) {
	if c.freeCount >= maxFree {
		return
	}
	v := &e.Value
	v.job, v.fn = nil, nil
	if v.rare != nil {
		*v.rare = rare{ready: v.ready}
	}
	v.link = c.free
	c.free = e
	c.freeCount++
}

// receiver readies the entry for a goroutine to wait on.
func (w *work) receiver() {
	if w.more().ready == nil {
		w.ready = make(chan struct{}, 1)
	}
}
