package machine

import (
	"slices"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// headed is what the memory gets of the row of a task. Nearly all tasks of a large
// store wait and have nothing else to them: of those it is little, because what one
// processor hands to another is read again from far away.
type headed struct {
	id               queue.ID
	queue, key, kind string
	seq              uint64
	changed          int64
	tier             uint8 // from 0
	unique           bool
	rest             *rest // nil if the task only waits
}

// rest is the head of any other task, with the bytes of its row if more of that is
// needed.
type rest struct {
	head  record.Head
	value []byte
}

// eachHead calls do with all rows of tasks, in the order of their keys. There are the
// bytes of those of tasks that run, are noted, or wait and have crashed. The next ones
// are read meanwhile, by a goroutine that ends before eachHead returns: to read a row
// and to put its task into the memory take about the same time.
func (m *Machine) eachHead(noted func(queue.ID) bool, do func(*headed) error) error {
	const size, ahead = 512, 4
	read, done := make(chan []headed, ahead), make(chan []headed, ahead+2)
	for range cap(done) {
		done <- make([]headed, 0, size)
	}
	var scanErr error
	go func() {
		defer close(read)
		scanErr = m.readHeads(noted, read, done)
	}()
	var err error
	for batch := range read {
		for i := range batch {
			if err == nil { // else what is left is read in vain: opening has failed
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

// readHeads fills batches that are done with, and hands them on.
func (m *Machine) readHeads(noted func(queue.ID) bool, read chan<- []headed, done <-chan []headed) error {
	var head record.Head
	batch := <-done
	err := m.journal.scan(rowTask, func(_ string, value []byte) error {
		if err := head.Read(value); err != nil {
			return err
		}
		next := headed{
			id: head.ID, queue: head.Queue, key: head.Key, kind: head.Kind, seq: head.Seq,
			changed: unix(head.Changed), tier: uint8(head.Tier - stint.Lowest), unique: head.Unique != "",
		}
		if started := noted(head.ID); started || !onlyWaits(&head) {
			next.rest = &rest{head: head}
			crashed := head.State == queue.Waiting && head.Crashes > 0
			if started || crashed || head.State == queue.Running {
				next.rest.value = slices.Clone(value) // which is valid for this call only
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

// onlyWaits reports whether a task may start, and there is nothing else to it.
func onlyWaits(h *record.Head) bool {
	return h.State == queue.Waiting && h.Crashes == 0 && h.Deadline.IsZero() && !joins(h)
}
