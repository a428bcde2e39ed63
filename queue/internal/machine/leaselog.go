package machine

import "github.com/stintgo/stint/queue"

// leaseLog records the leases of this process in LeaseStorage, so that after a crash the next
// machine on the same rows knows them. A slot is reserved under the lock, written when
// the row with which the task was claimed is durable, and freed when the row that ends
// the lease is durable. record and free need no lock; the caller of every other method
// holds the lock of the machine.
type leaseLog struct {
	counters *counters
	tasks    *tasks

	over    []freedSlot  // slots of leases that have ended since the last call of take; freed when that is durable
	storage LeaseStorage // nil: nothing is recorded
}

// end adds the slot of a lease that has ended to over.
func (g *leaseLog) end(held *lease) {
	if held.slot > 0 {
		g.over = append(g.over, freedSlot{held.slot, held.row.Lease.Token})
	}
}

// take removes and returns the slots of leases that have ended in this step.
func (g *leaseLog) take() []freedSlot {
	over := g.over
	g.over = nil
	return over
}

// putBack undoes take: the ends of these leases are not durable yet, so a later step
// frees their slots.
func (g *leaseLog) putBack(over []freedSlot) { g.over = append(g.over, over...) }

// reserve reserves a slot for a start that is about to be made.
func (g *leaseLog) reserve(token queue.Token) (slot int, err error) {
	if g.storage == nil {
		return 0, nil
	}
	return g.storage.Reserve(token)
}

// record records starts. It is called when the rows with which the tasks were claimed
// are durable, and before the claim returns. So every lease that a worker holds has an
// entry, and a row that has not ended it; an entry whose row disagrees belongs to a
// lease that has ended or that no worker received. record returns how many starts it
// has recorded before the first error: those have started.
func (g *leaseLog) record(starts []SlotEntry) (n int, err error) {
	if len(starts) == 0 {
		return 0, nil
	}
	return g.storage.Put(starts)
}

// free frees slots. The ends of their leases must be durable: otherwise a crash could
// bring back a lease whose entry is gone.
func (g *leaseLog) free(over []freedSlot) {
	for _, e := range over {
		g.storage.Free(e.slot, e.token)
	}
}

// recall returns the newest entry of each task that an earlier machine has recorded, and
// the slots of older and of void entries.
func (g *leaseLog) recall() (newest map[queue.ID]SlotEntry, over []freedSlot, err error) {
	newest = make(map[queue.ID]SlotEntry)
	if g.storage == nil {
		return newest, nil, nil
	}
	first := g.counters.firstToken()
	err = g.storage.Recall(func(slot int, s LeaseEntry) {
		other, twice := newest[s.ID]
		switch {
		case s.Token >= first: // void: the rows are an older copy than the log
			over = append(over, freedSlot{slot, s.Token})
		case twice && s.Token < other.Token:
			over = append(over, freedSlot{slot, s.Token})
		case twice:
			over = append(over, freedSlot{other.Slot, other.Token})
			newest[s.ID] = SlotEntry{slot, s}
		default:
			newest[s.ID] = SlotEntry{slot, s}
		}
	})
	return newest, over, err
}

// unused appends to over the slots of entries whose leases do not continue.
func (g *leaseLog) unused(starts map[queue.ID]SlotEntry, over []freedSlot) []freedSlot {
	for id, n := range starts {
		if t := g.tasks.get(id); t == nil || t.leased() == nil || t.lease.slot != n.Slot {
			over = append(over, freedSlot{n.Slot, n.Token})
		}
	}
	return over
}
