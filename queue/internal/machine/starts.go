package machine

import (
	"time"

	"github.com/stintgo/stint/queue"
)

// Starts is the storage of the lease log. It records the present leases, so that they are
// known if the process ends without having closed the machine. An entry must survive the
// end of the process but not a loss of power, so it needs no sync. A start has a slot as
// long as its lease lives; slots are numbered from 1. All methods may be called from any
// goroutine.
type Starts interface {
	// Recall calls fn for all entries of earlier machines, including those of leases that
	// have ended. It is called once, before all other methods. The slots of the entries
	// are reserved.
	Recall(fn func(slot int, s Start)) error
	// Reserve returns a slot for the start with a token, or an error if there is no free
	// slot. It is called with the machine locked.
	Reserve(token queue.Token) (slot int, err error)
	// Put writes starts to the slots that are reserved for their tokens, and omits starts
	// whose slots have been freed. It returns the number of starts before the first one
	// that it could not write, and the error of that one.
	Put(starts []Noted) (n int, err error)
	// Free frees a slot that was reserved for a token. The entry need not be erased.
	Free(slot int, token queue.Token)
}

// Start is the entry of a lease.
type Start struct {
	ID     queue.ID
	Seq    uint64 // of the task; tells it from a later task with the same ID
	Token  queue.Token
	At     time.Time // when it was claimed
	Worker string    // Recall may return it truncated
	// Remote is the length of a lease that outlives the store; 0 means that the lease
	// ends with the store.
	Remote time.Duration
}

// Noted is a start with the number of its slot.
type Noted struct {
	Place int
	Start
}

// freedSlot is the slot of a start whose lease has ended.
type freedSlot struct {
	slot  int
	token queue.Token
}
