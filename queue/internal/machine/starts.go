package machine

import (
	"time"

	"github.com/stintgo/stint/queue"
)

// Starts records which leases there are, so that they are known when the process ends
// without having closed the machine. An entry has to survive that, and need not survive
// the loss of power: so it costs no sync. A start has a slot as long as its lease lives;
// slots are numbered from 1. All methods may be called from any goroutine.
type Starts interface {
	// Recall calls fn for all entries of earlier machines, also of leases that are over.
	// It is called once, before everything else. The slots of the entries are reserved.
	Recall(fn func(place int, s Start)) error
	// Reserve returns a slot for the start with a token. It is called with the machine
	// locked. An error says that there is no room for more.
	Reserve(token queue.Token) (place int, err error)
	// Put writes starts to the slots that are reserved for their tokens, and leaves out
	// starts whose slots have been freed. It returns how many it is done with: all, or
	// those before the first one that it could not write, with the error of that.
	Put(starts []Noted) (n int, err error)
	// Free frees a slot that was reserved for a token. Its entry may stay there.
	Free(place int, token queue.Token)
}

// Start is the entry of a lease.
type Start struct {
	ID     queue.ID
	Seq    uint64 // the task's: the same ID may have been forgotten and submitted again
	Token  queue.Token
	At     time.Time // when it was claimed
	Worker string    // may come back cut short
	// Remote is the length of a lease that outlives its store; 0 is one that does
	// not.
	Remote time.Duration
}

// Noted is a start with the number of its slot.
type Noted struct {
	Place int
	Start
}

// freedSlot is the slot of a start whose lease is over.
type freedSlot struct {
	slot  int
	token queue.Token
}
