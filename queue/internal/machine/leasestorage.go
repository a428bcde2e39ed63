package machine

import (
	"time"

	"github.com/stintgo/stint/queue"
)

// LeaseStorage stores the lease log: the present leases, so that they are known if the
// process ends without having closed the machine. An entry must survive the end of the
// process but not a loss of power, so it needs no sync. A lease has a slot as long as it
// lives; slots are numbered from 1. All methods may be called from any goroutine.
type LeaseStorage interface {
	// Recall calls fn for all entries of earlier machines, including those of leases that
	// have ended. It is called once, before all other methods. The slots of the entries
	// are reserved.
	Recall(fn func(slot int, e LeaseEntry)) error
	// Reserve returns a slot for the lease with a token, or an error if there is no free
	// slot. It is called with the machine locked.
	Reserve(token queue.Token) (slot int, err error)
	// Put writes entries to the slots that are reserved for their tokens, and omits entries
	// whose slots have been freed. It returns the number of entries before the first one
	// that it could not write, and its error.
	Put(entries []SlotEntry) (n int, err error)
	// Free frees a slot that was reserved for a token. The entry need not be erased.
	Free(slot int, token queue.Token)
}

// LeaseEntry is the entry of a lease in the lease log.
type LeaseEntry struct {
	ID     queue.ID
	Seq    uint64 // of the task; distinguishes it from a later task with the same ID
	Token  queue.Token
	At     time.Time // when it was claimed
	Worker string    // Recall may return it truncated
	// Remote is the length of a lease that outlives the store; 0 means that the lease
	// ends with the store.
	Remote time.Duration
}

// SlotEntry is an entry with the number of its slot.
type SlotEntry struct {
	Slot int
	LeaseEntry
}

// freedSlot is the slot of a lease that has ended.
type freedSlot struct {
	slot  int
	token queue.Token
}
