package machine

import (
	"cmp"
	"slices"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// loader reads the rows of all tasks into memory when a machine is opened, and
// continues or ends the leases of the previous machine. Workers in the process of that
// machine have ended with it: if it was closed, it has released their leases; if it
// crashed, the loader counts these leases as lost. Workers in other processes are not
// affected, and their leases continue. The loader runs in Open, before any other call,
// without the lock.
type loader struct {
	attempts    *attempts
	cascades    *cascades
	clock       *clock
	corrector   *corrector
	counters    *counters
	deps        *dependencies
	holds       *holds
	journal     *journal.Journal
	leaseLog    *leaseLog
	scans       *scans
	queues      *queueSet
	states      *stateIndex
	tasks       *tasks
	transitions *transitions
}

// load reads the rows of all tasks.
func (o *loader) load() error {
	var (
		order   reorder
		running []record.Row
		joining []record.Header
	)
	entries, unused, err := o.leaseLog.recall()
	if err != nil {
		return err
	}
	logged := func(id queue.ID) bool { _, ok := entries[id]; return ok }
	err = o.eachSummary(logged, func(h *rowSummary) error {
		o.counters.reserve(h.seq)
		o.clock.now = max(o.clock.now, h.changed)
		if h.more == nil {
			o.addWaiting(h, &order)
			return nil
		}
		header := &h.more.header
		if !header.State.Finished() && joins(header) {
			joining = append(joining, *header)
		}
		row, ran, err := o.lastRow(header, h.more.value, entries[header.ID])
		if ran {
			running = append(running, row)
		} else if err == nil {
			err = o.addInState(header, h.more.value, &order)
		}
		return err
	})
	if err != nil {
		return err
	}
	o.tasks.indexAll()
	order.flush(o.states, len(order.window))
	for i := range running {
		o.addRunning(&running[i], entries[running[i].ID])
	}
	o.states.sortLists()
	o.joinAll(joining)
	o.restart()
	o.leaseLog.freeUnused(entries, unused)
	return nil
}

// addWaiting adds a task to the memory that is Waiting and has no other properties.
func (o *loader) addWaiting(h *rowSummary, order *reorder) {
	t := o.tasks.addUnindexed(h.id)
	o.states.bind(t, h.queue, h.tier, h.unique, h.seq)
	t.state, t.at = queue.Waiting, h.changed
	o.queues.of(t).states[queue.Waiting]++
	order.add(o.states, queuedTask{t, h.key, h.kind, h.seq, false})
}

// addInState adds a task to the memory, in the state of its row. The whole row is decoded
// only if the task has crashed.
func (o *loader) addInState(h *record.Header, value []byte, order *reorder) error {
	row := h.Row()
	t := o.tasks.addUnindexed(h.ID)
	o.states.bind(t, h.Queue, uint8(h.Tier-stint.Lowest), h.Unique != "", h.Seq)
	if !h.State.Finished() {
		o.states.arm(t, &row)
	}
	if h.State == queue.Waiting {
		t.state, t.at = queue.Waiting, unix(h.Changed)
		o.queues.of(t).states[queue.Waiting]++
		suspect, err := suspectedByHeader(h, value)
		order.add(o.states, queuedTask{t, h.Key, h.Kind, h.Seq, suspect})
		return err
	}
	o.states.enter(t, &row, h.State)
	return nil
}

// joinAll adds unfinished tasks to their groups and batches, and then registers their
// waits. All tasks must be in memory already. It starts a scan of the tasks that are Held
// without a reason, or Waiting with one: a crash has interrupted an earlier scan.
func (o *loader) joinAll(joining []record.Header) {
	slices.SortFunc(joining, func(a, b record.Header) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range joining {
		row := joining[i].Row()
		o.holds.joinOthers(o.tasks.get(row.ID), &row)
	}
	for i := range joining {
		row := joining[i].Row()
		o.deps.await(o.tasks.get(row.ID), &row.Spec)
	}
	o.cascades.resume()
	misplaced := new(waiters)
	for i := range joining {
		if t := o.tasks.get(joining[i].ID); o.holds.misplaced(t) {
			misplaced.PushBack(t)
		}
	}
	o.scans.start(misplaced, visitAdjust)
}

// lastRow returns the row of a task, and whether the task was running when the previous
// machine ended, as its row or its entry in the lease log says.
func (o *loader) lastRow(h *record.Header, value []byte, e SlotEntry) (row record.Row, ran bool, err error) {
	started := h.State == queue.Waiting && e.Token > 0 && e.Seq == h.Seq
	if h.State != queue.Running && !started {
		return row, false, nil
	}
	if row, err = record.Decode(value); err != nil {
		return row, false, err
	}
	o.restoreClaim(&row, e)
	return row, row.State == queue.Running, nil
}

// restoreClaim adds the last claim to a row if only the lease log has it. A claim
// writes no row, so only a row in state Waiting may lack a claim: all later changes of
// a running task write the row.
func (o *loader) restoreClaim(row *record.Row, e SlotEntry) {
	if e.Token > row.Lease.Token && row.State == queue.Waiting {
		o.clock.now = max(o.clock.now, e.At.UnixNano())
		o.transitions.claimed(o.queues.get(row.Queue), row, e.LeaseEntry, e.At)
	}
}

// addRunning adds a running task to the memory. The entry in the lease log keeps its slot
// if it is of the present lease.
func (o *loader) addRunning(row *record.Row, e SlotEntry) {
	t := o.states.admit(row)
	o.queues.of(t).order.Keys().Admit(row.Key)
	held := &lease{row: *row, order: row.Order, by: row.OrderBy, reason: row.OrderReason}
	if e.Token == row.Lease.Token {
		held.slot = e.Slot
	}
	o.states.run(t, held, o.clock.after(row.Remote))
}

// restart ends the leases of workers in the previous process as lost. It leaves the other
// leases to the first call, which extends them.
func (o *loader) restart() {
	for _, t := range o.states.leased() {
		if t.lease.row.Remote > 0 {
			o.corrector.opening.resumed = append(o.corrector.opening.resumed, t)
		} else {
			o.attempts.lose(t)
			o.corrector.opening.lost = append(o.corrector.opening.lost, t)
		}
	}
}

// eachSummary calls do with the summaries of all rows of tasks, in the order of their
// keys. A summary has the bytes of the row if the task is Running, has an entry in the
// lease log, or is Waiting and has crashed. A goroutine, which ends before eachSummary
// returns, reads the next rows concurrently: reading a row takes about as long as do.
func (o *loader) eachSummary(logged func(queue.ID) bool, do func(*rowSummary) error) error {
	const size, prefetched = 512, 4
	read, done := make(chan []rowSummary, prefetched), make(chan []rowSummary, prefetched+2)
	for range cap(done) {
		done <- make([]rowSummary, 0, size)
	}
	var scanErr error
	go func() {
		defer close(read)
		scanErr = o.readSummaries(logged, read, done)
	}()
	var err error
	for batch := range read {
		for i := range batch {
			if err == nil { // after an error the remaining batches are only drained
				err = do(&batch[i])
			}
		}
		done <- batch[:0]
	}
	if err == nil {
		err = scanErr
	}
	return err
}

// readSummaries receives empty batches from done, fills them and sends them to read.
func (o *loader) readSummaries(logged func(queue.ID) bool, read chan<- []rowSummary, done <-chan []rowSummary) error {
	var header record.Header
	batch := <-done
	err := o.journal.Stored().Scan(rowTask, func(_ string, value []byte) error {
		if err := header.Read(value); err != nil {
			return err
		}
		next := rowSummary{
			id: header.ID, queue: header.Queue, key: header.Key, kind: header.Kind, seq: header.Seq,
			changed: unix(header.Changed), tier: uint8(header.Tier - stint.Lowest), unique: header.Unique != "",
		}
		if started := logged(header.ID); started || !onlyWaits(&header) {
			next.more = &summaryRest{header: header}
			crashed := header.State == queue.Waiting && header.Crashes > 0
			if started || crashed || header.State == queue.Running {
				next.more.value = slices.Clone(value) // value is valid during this call only
			}
		}
		if batch = append(batch, next); len(batch) == cap(batch) {
			read <- batch
			batch = <-done
		}
		return nil
	})
	read <- batch
	return err
}

// rowSummary is the part of a row that the memory needs. It is small for a Waiting task
// without other properties, as nearly all tasks of a large store are, because it passes
// from the cache of one processor to that of another.
type rowSummary struct {
	id               queue.ID
	queue, key, kind string
	seq              uint64
	changed          int64
	tier             uint8 // from 0
	unique           bool
	more             *summaryRest // nil for such a task; see onlyWaits
}

// summaryRest is the header of any other task, with the bytes of its row if they are
// needed.
type summaryRest struct {
	header record.Header
	value  []byte
}

// onlyWaits reports whether a task is Waiting and has no crash, deadline, group, batch or
// wait.
func onlyWaits(h *record.Header) bool {
	return h.State == queue.Waiting && h.Crashes == 0 && h.Deadline.IsZero() && !joins(h)
}

// suspectedByHeader is suspected for a row whose header has been read. It decodes the row, for
// MaxCrashes, only if the task has crashed.
func suspectedByHeader(h *record.Header, value []byte) (bool, error) {
	if h.Crashes == 0 {
		return false, nil
	}
	row, err := record.Decode(value)
	return suspected(&row), err
}

// joins reports whether a task has a group, a batch or waits.
func joins(h *record.Header) bool {
	return h.Group != "" || !h.Batch.IsZero() || len(h.After) > 0 || len(h.AfterAny) > 0 ||
		!h.AfterBatch.IsZero()
}
