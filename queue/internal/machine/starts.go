package machine

import (
	"time"

	"github.com/stintgo/stint/queue"
)

// Starts notes which leases there are, so that they are known when the process
// ends without having closed the machine. What is noted has to survive that, and
// need not survive the loss of power: so it costs no sync. A start has a place as
// long as its lease lives; places are numbered from 1. All methods may be called
// from any goroutine.
type Starts interface {
	// Recall calls fn for all that is noted of earlier machines, also of leases that
	// are over. It is called once, before everything else. Their places are reserved.
	Recall(fn func(place int, s Start)) error
	// Reserve returns a place for the start with a token. It is called with the
	// machine locked. An error says that there is no room for more.
	Reserve(token queue.Token) (place int, err error)
	// Put notes starts in the places that are reserved for their tokens, and leaves
	// those out whose places have been freed. It returns how many it is done with,
	// all or those before one that could not be noted, and the error of that.
	Put(starts []Noted) (n int, err error)
	// Free gives a place back that was reserved for a token. What is noted in it may
	// stay there.
	Free(place int, token queue.Token)
}

// Start is what is noted of a lease.
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

// Noted is a start in its place.
type Noted struct {
	Place int
	Start
}

// freed is the place of a start whose lease is over.
type freedSlot struct {
	place int
	token queue.Token
}
