package machine

import (
	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// prefetch reads the rows of tasks that start. The oldest tasks of a long backlog start
// first, and their rows are no longer in memory. Tasks that were submitted together
// have ascending IDs, so their rows are neighbours, and one call reads a hundred of
// them in the time of ten look-ups, or of one if each takes a round trip. So the rows of
// the tasks behind a starting task are read with its row, as long as most rows that were
// read in this way are used. The caller of each method holds the lock of the machine, so
// no row changes while it is read.
type prefetch struct {
	cfg     *Config
	journal *journal.Journal
	queues  *queueSet
	rows    *taskRows
	tasks   *tasks
}

const (
	maxPrefetch    = 128 // rows that are read in one call
	singleReads    = 32  // rows that are read one by one after a call whose rows were not used
	looksPerWanted = 4   // tasks that neighbours looks at for each row that it wants
)

// prefetchWindow decides how many rows are read at once for one tier of a queue. The zero
// value begins with one row.
type prefetchWindow struct {
	read   []uint32 // numbers of the tasks whose rows were read last
	single int      // rows that are still to be read one by one
}

// size returns how many rows to read now, given how many of the rows that were read last
// are unused: twice as many as last time if at least half of those were used, else one.
func (a *prefetchWindow) size(unused int) int {
	if 2*unused > len(a.read) {
		a.single = singleReads
	}
	if a.single > 0 {
		a.single--
		return 1
	}
	return min(2*len(a.read), maxPrefetch)
}

// readStarting reads the row of a task that starts, and returns the mark of its last
// change. The caller puts the row into the lease of the task.
func (p *prefetch) readStarting(t *task, row *record.Row) (mark uint64, err error) {
	c, ok := p.withdraw(&t.id)
	if !ok && p.cfg.Keep > 0 {
		p.fill(t)
		c, ok = p.withdraw(&t.id)
	}
	if !ok {
		c.Value, err = p.journal.Stored().Get(taskRow(&t.id)) // no change of it is in memory
	}
	return c.Seq, p.rows.decode(t, c.Value, err, row)
}

// fill reads the row of a task that is about to start, and rows of tasks that will
// probably start next, into the memory of the journal. It omits rows that it cannot
// read: a later read of such a row returns the error.
func (p *prefetch) fill(t *task) {
	a := &p.queues.of(t).prefetch[t.tier]
	unused := 0
	for _, no := range a.read {
		if old := p.tasks.at(no); old.state == queue.Waiting && old != t {
			if c, _ := p.withdraw(&old.id); c.Stored {
				unused++
			}
		}
	}
	n := a.size(unused)
	a.read = append(a.read[:0], t.no())
	if n < 2 || !p.journal.HasRoom() {
		return
	}
	a.read = p.neighbours(a.read, t, n)
	p.journal.Load(p.keysOf(a.read))
}

// neighbours appends the Waiting tasks of the queue and the tier of t with the next
// larger IDs, until all has n elements.
func (p *prefetch) neighbours(all []uint32, t *task, n int) []uint32 {
	most := looksPerWanted * n
	p.tasks.ids.from(t.id, false, func(no uint32) bool {
		next := p.tasks.at(no)
		if next.queueNo == t.queueNo && next.tier == t.tier && next.state == queue.Waiting {
			all = append(all, no)
		}
		most--
		return len(all) < n && most > 0
	})
	return all
}

// keysOf returns the keys of the rows of tasks.
func (p *prefetch) keysOf(tasks []uint32) []string {
	keys := make([]string, len(tasks))
	for i, no := range tasks {
		keys[i] = taskRow(&p.tasks.at(no).id)
	}
	return keys
}

// near reports whether a new task may start soon enough to keep its row of size bytes
// in memory: whether it fits into Config.Keep with the rows of the tasks before it,
// assumed to be of the same size.
func (p *prefetch) near(t *task, size int) bool {
	before, q := 0, p.queues.of(t)
	for tier := int(t.tier); tier < stint.Tiers; tier++ {
		before += q.order.LenTier(tier)
	}
	return before*size <= p.cfg.Keep
}

// withdraw returns the row of a task if it is in the memory of the journal, and removes
// it from there if it is in the rows as well.
func (p *prefetch) withdraw(id *queue.ID) (row journal.Withdrawn, ok bool) {
	var key [len(rowTask) + len(id)]byte
	copy(key[copy(key[:], rowTask):], id[:])
	return p.journal.Withdraw(key[:])
}
