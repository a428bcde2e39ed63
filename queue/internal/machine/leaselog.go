package machine

import "github.com/stintgo/stint/queue"

// leaseLog records the leases of this process in Starts, so that the next machine on the
// same rows knows them after a crash. A slot is reserved with the lock held, written when
// the row of its task is durable as it was claimed, and freed when the row that ends the
// lease is durable. record and free need no lock; the caller of every other method holds
// the lock of the machine.
type leaseLog struct {
	counters *counters
	tasks    *tasks

	over   []freedSlot // slots of leases that have ended since the last call of take
	starts Starts      // nil: nothing is recorded
}

// end marks the slot of a lease that has ended, to be freed when that is durable.
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
func (g *leaseLog) reserve(token queue.Token) (place int, err error) {
	if g.starts == nil {
		return 0, nil
	}
	return g.starts.Reserve(token)
}

// record records starts. It is called when the rows of their tasks are durable as they
// were claimed, and before the claim is answered. So for every lease that a worker has,
// there is an entry, and a row that has not ended it; an entry whose row says otherwise
// is of a lease that is over, or that no worker ever had. record returns how many starts
// it has recorded before one that it could not record: those have started.
func (g *leaseLog) record(starts []Noted) (n int, err error) {
	if len(starts) == 0 {
		return 0, nil
	}
	return g.starts.Put(starts)
}

// free frees slots, once it is durable that their leases are over: until then a crash
// would bring the leases back.
func (g *leaseLog) free(over []freedSlot) {
	for _, e := range over {
		g.starts.Free(e.slot, e.token)
	}
}

// recall returns the newest entry of each task that an earlier machine has recorded, and
// the slots of entries that are older or void.
func (g *leaseLog) recall() (newest map[queue.ID]Noted, over []freedSlot, err error) {
	newest = make(map[queue.ID]Noted)
	if g.starts == nil {
		return newest, nil, nil
	}
	first := g.counters.firstToken()
	err = g.starts.Recall(func(place int, s Start) {
		other, twice := newest[s.ID]
		switch {
		case s.Token >= first: // the rows are those of an older copy
			over = append(over, freedSlot{place, s.Token})
		case twice && s.Token < other.Token:
			over = append(over, freedSlot{place, s.Token})
		case twice:
			over = append(over, freedSlot{other.Place, other.Token})
			newest[s.ID] = Noted{place, s}
		default:
			newest[s.ID] = Noted{place, s}
		}
	})
	return newest, over, err
}

// unused returns over, and the slots of entries whose leases do not continue.
func (g *leaseLog) unused(starts map[queue.ID]Noted, over []freedSlot) []freedSlot {
	for id, n := range starts {
		if t := g.tasks.get(id); t == nil || t.leased() == nil || t.lease.slot != n.Place {
			over = append(over, freedSlot{n.Place, n.Token})
		}
	}
	return over
}
