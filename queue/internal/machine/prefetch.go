package machine

import (
	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// prefetch reads the rows of tasks that start. The oldest tasks of a long backlog start
// first, and their rows left the memory long ago. Submitters of many tasks give them
// ascending IDs, so their rows are neighbours: reading a hundred of them in one scan
// takes as long as looking up ten. So the rows of tasks that wait behind one that starts
// are read with it, as long as they are then asked for. The caller of each method holds
// the lock of the machine, so no row changes while it is read.
type prefetch struct {
	cfg     *Config
	journal *journal.Journal
	queues  *queueSet
	rows    *taskRows
	tasks   *tasks
}

const (
	maxPrefetch = 128 // rows that are read in one scan
	aloneFor    = 32  // rows that are read one by one before more are tried again
	passedBy    = 4   // tasks that are looked at for each row that is wanted
)

// prefetchWindow is how many rows are read at once, for one tier of a queue. The zero
// value begins with one row.
type prefetchWindow struct {
	read  []uint32 // numbers of the tasks whose rows were read last
	alone int      // rows that are still to be read one by one
}

// size returns how many rows are to be read now, if unused of the rows that were read
// last have not been asked for: twice as many, as long as half of them were.
func (a *prefetchWindow) size(unused int) int {
	if 2*unused > len(a.read) {
		a.alone = aloneFor
	}
	if a.alone > 0 {
		a.alone--
		return 1
	}
	return min(2*len(a.read), maxPrefetch)
}

// readStarting reads the row of a task that starts, and returns the mark from which on it
// is durable. From then on the row is in the lease of the task.
func (p *prefetch) readStarting(t *task, row *record.Row) (mark uint64, err error) {
	c, ok := p.withdraw(&t.id)
	if !ok && p.cfg.Keep > 0 {
		p.fill(t)
		c, ok = p.withdraw(&t.id)
	}
	if !ok {
		c.Value, err = p.journal.GetStored(taskRow(&t.id))
	}
	return c.Seq, p.rows.decode(t, c.Value, err, row)
}

// fill reads the row of a task that is about to start, and rows of tasks that are likely
// to be next, into the memory of the journal. It leaves out rows that it cannot read: the
// reader of such a row gets the error.
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

// neighbours appends tasks of the same queue and tier as t that wait as it does, those
// with the next larger IDs, until there are n.
func (p *prefetch) neighbours(all []uint32, t *task, n int) []uint32 {
	most := passedBy * n
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

// near reports whether a task that has come in may start before long: if the rows of all
// tasks that start before it are as long as its own, they can stay in memory with it.
func (p *prefetch) near(t *task, size int) bool {
	before, q := 0, p.queues.of(t)
	for tier := int(t.tier); tier < stint.Tiers; tier++ {
		before += q.order.LenTier(tier)
	}
	return before*size <= p.cfg.Keep
}

// withdraw returns the row of a task, if it is in the memory of the journal, and removes
// it from there if it is in rows as well.
func (p *prefetch) withdraw(id *queue.ID) (row journal.Withdrawn, ok bool) {
	var key [len(rowTask) + len(id)]byte
	copy(key[copy(key[:], rowTask):], id[:])
	return p.journal.Withdraw(key[:])
}
