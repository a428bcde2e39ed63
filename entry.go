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
	key    string
	since  int64 // when it arrived, in nanoseconds since the core was made
	weight int32
	tier   int8
	lost   bool  // its grant was taken away
	grant  Grant // of Slots,
	task   *task // and the function that runs on it

	ready chan struct{} // a waiting goroutine goes on when it receives here,
	err   error         // without a slot if this is set

	watch        *watch // which context's end takes it out of the queue
	older, newer *entry // in the watch's list
	link         *entry // in a list of granted or of free entries
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
	entryChunk = 64   // entries are allocated by the chunk
	maxFree    = 4096 // and kept for use again up to this number
)

// entry returns an unused entry for s. The lock is held.
func (c *core) entry(s Scheduler, tier int) *entry {
	e := c.free
	if e == nil {
		chunk := make([]entry, entryChunk)
		for i := range chunk {
			c.recycleLocked(&chunk[i])
		}
		e = c.free
	}
	c.free = e.Value.link
	c.freeCount--
	e.Value.link = nil
	e.Value.key, e.Value.weight, e.Value.tier = s.key, s.weight, int8(tier)
	return e
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
	v.job, v.fn, v.key, v.err = nil, nil, "", nil
	v.grant, v.lost, v.task = 0, false, nil
	v.link = c.free
	c.free = e
	c.freeCount++
}

// receiver readies the entry for a goroutine to wait on.
func (w *work) receiver() {
	if w.ready == nil {
		w.ready = make(chan struct{}, 1)
	}
}
