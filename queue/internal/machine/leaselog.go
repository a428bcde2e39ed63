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

	ended   []freedSlot  // slots of leases that have ended since the last call of take; freed when that is durable
	storage LeaseStorage // nil: nothing is recorded
}

// end adds the slot of a lease that has ended to those that are freed when this step is durable.
func (g *leaseLog) end(held *lease) {
	if held.slot > 0 {
		g.ended = append(g.ended, freedSlot{held.slot, held.row.Lease.Token})
	}
}

// take removes and returns the slots of leases that have ended in this step.
func (g *leaseLog) take() []freedSlot {
	ended := g.ended
	g.ended = nil
	return ended
}

// putBack undoes take: the ends of these leases are not durable yet, so a later step
// frees their slots.
func (g *leaseLog) putBack(ended []freedSlot) { g.ended = append(g.ended, ended...) }

// reserve reserves a slot for a lease that is about to begin.
func (g *leaseLog) reserve(token queue.Token) (slot int, err error) {
	if g.storage == nil {
		return 0, nil
	}
	return g.storage.Reserve(token)
}

// record writes the entries of a claim. It is called when the rows with which the tasks
// were claimed are durable, and before the claim returns. So every lease that a worker
// holds has an entry, and a row that has not ended it; an entry whose row disagrees belongs
// to a lease that has ended or that no worker received. record returns how many entries it
// has written before the first error: their tasks have started.
func (g *leaseLog) record(entries []SlotEntry) (n int, err error) {
	if len(entries) == 0 {
		return 0, nil
	}
	return g.storage.Put(entries)
}

// free frees slots. The ends of their leases must be durable: otherwise a crash could
// bring back a lease whose entry is gone.
func (g *leaseLog) free(slots []freedSlot) {
	for _, f := range slots {
		g.storage.Free(f.slot, f.token)
	}
}

// recall returns the newest entry of each task that an earlier machine has recorded, and
// the slots of older and of void entries.
func (g *leaseLog) recall() (newest map[queue.ID]SlotEntry, unused []freedSlot, err error) {
	newest = make(map[queue.ID]SlotEntry)
	if g.storage == nil {
		return newest, nil, nil
	}
	first := g.counters.firstToken()
	err = g.storage.Recall(func(slot int, e LeaseEntry) {
		other, twice := newest[e.ID]
		switch {
		case e.Token >= first: // void: the rows are an older copy than the log
			unused = append(unused, freedSlot{slot, e.Token})
		case twice && e.Token < other.Token:
			unused = append(unused, freedSlot{slot, e.Token})
		case twice:
			unused = append(unused, freedSlot{other.Slot, other.Token})
			newest[e.ID] = SlotEntry{slot, e}
		default:
			newest[e.ID] = SlotEntry{slot, e}
		}
	})
	return newest, unused, err
}

// freeUnused has the end of the first step free the unused slots of recall, and those of
// entries whose leases do not continue.
func (g *leaseLog) freeUnused(newest map[queue.ID]SlotEntry, unused []freedSlot) {
	g.ended = unused
	for id, e := range newest {
		if t := g.tasks.get(id); t == nil || t.leased() == nil || t.lease.slot != e.Slot {
			g.ended = append(g.ended, freedSlot{e.Slot, e.Token})
		}
	}
}
