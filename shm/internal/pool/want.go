package pool

// Want describes the waiters of a participant.
type Want struct {
	Tier   int    // the highest tier that waits
	Ticket uint64 // when it began to wait, by [Ticket]: within a tier the earliest is served first
	Count  int    // number of waiters
	Busy   bool   // the participant can use no slot now; none is granted to it
}

// The word of a want:
//
//	bits  0–19   the number of waiters, at most countMax
//	bits 20–60   the ticket
//	bits 61–63   the tier plus 1
//
// It is 0 if there are no waiters.
const (
	countBits  = 20
	countMax   = 1<<countBits - 1
	ticketAt   = countBits
	ticketBits = 41
	tierAt     = ticketAt + ticketBits
	_          = uint(-(Tiers >> (64 - tierAt))) // tiers fit
)

// Ticket converts a time in nanoseconds to a position in the queue. A ticket counts units
// of 1024 ns and wraps after 26 days; two tickets can be compared if they are less than
// 13 days apart.
func Ticket(nanoseconds int64) uint64 { return uint64(nanoseconds) >> 10 % (1 << ticketBits) }

func (w Want) word() uint64 {
	if w.Count == 0 {
		return 0
	}
	return uint64(w.Tier+1)<<tierAt | w.Ticket<<ticketAt | uint64(min(w.Count, countMax))
}

func tierOf(want uint64) int { return int(want>>tierAt) - 1 }

func countOf(want uint64) int { return int(want & countMax) }

// before reports whether the want a is served before b.
func before(a, b uint64) bool {
	if tierOf(a) != tierOf(b) {
		return tierOf(a) > tierOf(b)
	}
	return earlier(a, b)
}

// earlier reports whether the ticket of the want a is before that of b.
func earlier(a, b uint64) bool {
	const unused = 64 - ticketBits
	return int64(a>>ticketAt<<unused-b>>ticketAt<<unused) < 0
}
