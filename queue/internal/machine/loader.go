package machine

import (
	"cmp"
	"slices"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// loader puts the tasks of all rows into the memory when a machine is opened, and decides
// about the leases that there were. Workers in the process of the earlier machine have
// ended with it: if it was closed, their leases have been released, and if not, they are
// lost. Workers in other processes do not know that anything happened, and their leases
// go on. It runs before the machine has any caller, without the lock.
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
	passes      *passes
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
		joining []record.Head
	)
	starts, over, err := o.leaseLog.recall()
	if err != nil {
		return err
	}
	logged := func(id queue.ID) bool { _, ok := starts[id]; return ok }
	err = o.eachHead(logged, func(h *rowSummary) error {
		o.counters.reserve(h.seq)
		o.clock.now = max(o.clock.now, h.changed)
		if h.more == nil {
			o.addWaiting(h, &order)
			return nil
		}
		head := &h.more.head
		if !head.State.Finished() && joins(head) {
			joining = append(joining, *head)
		}
		row, ran, err := o.lastRow(head, h.more.value, starts[head.ID])
		if ran {
			running = append(running, row)
		} else if err == nil {
			err = o.addHead(head, h.more.value, &order)
		}
		return err
	})
	if err != nil {
		return err
	}
	o.tasks.indexAll()
	order.flush(o.states, len(order.window))
	for i := range running {
		o.addRunning(&running[i], starts[running[i].ID])
	}
	o.states.sortLists()
	o.joinAll(joining)
	o.restart()
	o.leaseLog.over = o.leaseLog.unused(starts, over)
	return nil
}

// addWaiting puts a task that only waits into the memory.
func (o *loader) addWaiting(h *rowSummary, order *reorder) {
	t := o.tasks.addUnindexed(h.id)
	o.states.bind(t, h.queue, h.tier, h.unique, h.seq)
	t.state, t.at = queue.Waiting, h.changed
	o.queues.of(t).states[queue.Waiting]++
	order.add(o.states, queuedTask{t, h.key, h.kind, h.seq, false})
}

// addHead puts the task of a row into the memory, in the state that the row has. The rest
// of the row is decoded only if the task has crashed.
func (o *loader) addHead(h *record.Head, value []byte, order *reorder) error {
	row := h.Row()
	t := o.tasks.addUnindexed(h.ID)
	o.states.bind(t, h.Queue, uint8(h.Tier-stint.Lowest), h.Unique != "", h.Seq)
	if !h.State.Finished() {
		o.states.arm(t, &row)
	}
	if h.State == queue.Waiting {
		t.state, t.at = queue.Waiting, unix(h.Changed)
		o.queues.of(t).states[queue.Waiting]++
		suspect, err := suspectedHead(h, value)
		order.add(o.states, queuedTask{t, h.Key, h.Kind, h.Seq, suspect})
		return err
	}
	o.states.enter(t, &row, h.State)
	return nil
}

// joinAll enters unfinished tasks in groups and batches, and then their waits, when all
// tasks are there that one might wait for.
func (o *loader) joinAll(joining []record.Head) {
	slices.SortFunc(joining, func(a, b record.Head) int { return cmp.Compare(a.Seq, b.Seq) })
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
	o.passes.start(misplaced, visitAdjust)
}

// lastRow returns the row of a task that was running when the store ended, by its row or
// by its entry in the lease log.
func (o *loader) lastRow(h *record.Head, value []byte, n Noted) (row record.Row, ran bool, err error) {
	started := h.State == queue.Waiting && n.Token > 0 && n.Seq == h.Seq
	if h.State != queue.Running && !started {
		return row, false, nil
	}
	if row, err = record.Decode(value); err != nil {
		return row, false, err
	}
	o.restoreClaim(&row, n)
	return row, row.State == queue.Running, nil
}

// restoreClaim adds the last claim to a row if only the lease log has it. Only a row that
// waits as it did when it was claimed may lack a claim: everything that happens to a
// running task, and its end, writes the row.
func (o *loader) restoreClaim(row *record.Row, n Noted) {
	if n.Token > row.Lease.Token && row.State == queue.Waiting {
		o.clock.now = max(o.clock.now, n.At.UnixNano())
		o.transitions.claimed(o.queues.get(row.Queue), row, n.Start, n.At)
	}
}

// addRunning puts a running task into the memory. Its entry in the lease log keeps its
// slot, if it is of this lease.
func (o *loader) addRunning(row *record.Row, n Noted) {
	t := o.states.admit(row)
	o.queues.of(t).order.Keys().Admit(row.Key)
	held := &lease{row: *row, order: row.Order, by: row.OrderBy, reason: row.OrderReason}
	if n.Token == row.Lease.Token {
		held.slot = n.Place
	}
	o.states.run(t, held, o.clock.after(row.Remote))
}

// restart decides about the leases that there were: leases of workers of the process that
// has ended are lost, and the others begin anew.
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

// eachHead calls do with the summaries of all rows of tasks, in the order of their keys.
// A summary has the bytes of the row if the task is running, has an entry in the lease
// log, or waits and has crashed. A goroutine, which ends before eachHead returns, reads
// the next rows meanwhile: reading a row and putting its task into the memory take about
// the same time.
func (o *loader) eachHead(logged func(queue.ID) bool, do func(*rowSummary) error) error {
	const size, ahead = 512, 4
	read, done := make(chan []rowSummary, ahead), make(chan []rowSummary, ahead+2)
	for range cap(done) {
		done <- make([]rowSummary, 0, size)
	}
	var scanErr error
	go func() {
		defer close(read)
		scanErr = o.readHeads(logged, read, done)
	}()
	var err error
	for batch := range read {
		for i := range batch {
			if err == nil { // otherwise opening has failed, and the rest is read for nothing
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

// readHeads fills empty batches, and sends them on.
func (o *loader) readHeads(logged func(queue.ID) bool, read chan<- []rowSummary, done <-chan []rowSummary) error {
	var head record.Head
	batch := <-done
	err := o.journal.Scan(rowTask, func(_ string, value []byte) error {
		if err := head.Read(value); err != nil {
			return err
		}
		next := rowSummary{
			id: head.ID, queue: head.Queue, key: head.Key, kind: head.Kind, seq: head.Seq,
			changed: unix(head.Changed), tier: uint8(head.Tier - stint.Lowest), unique: head.Unique != "",
		}
		if started := logged(head.ID); started || !onlyWaits(&head) {
			next.more = &summaryRest{head: head}
			crashed := head.State == queue.Waiting && head.Crashes > 0
			if started || crashed || head.State == queue.Running {
				next.more.value = slices.Clone(value) // which is valid for this call only
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

// rowSummary is what the memory gets of the row of a task. Nearly all tasks of a large
// store only wait: for those it is small, because what one processor hands to another is
// read from far away.
type rowSummary struct {
	id               queue.ID
	queue, key, kind string
	seq              uint64
	changed          int64
	tier             uint8 // from 0
	unique           bool
	more             *summaryRest // nil if the task only waits
}

// summaryRest is the head of any other task, with the bytes of its row if more of it is
// needed.
type summaryRest struct {
	head  record.Head
	value []byte
}

// onlyWaits reports whether a task may start, and takes part in nothing else.
func onlyWaits(h *record.Head) bool {
	return h.State == queue.Waiting && h.Crashes == 0 && h.Deadline.IsZero() && !joins(h)
}

// suspectedHead is suspected for a row of which the head has been read: the rest says how
// many crashes are too many.
func suspectedHead(h *record.Head, value []byte) (bool, error) {
	if h.Crashes == 0 {
		return false, nil
	}
	row, err := record.Decode(value)
	return suspected(&row), err
}

// joins reports whether a task takes part in a group, in a batch, or in waits.
func joins(h *record.Head) bool {
	return h.Group != "" || !h.Batch.IsZero() || len(h.After) > 0 || len(h.AfterAny) > 0 ||
		!h.AfterBatch.IsZero()
}
