package lease

import "github.com/stintgo/stint/queue"

// Slots are the slots of a lease log, numbered from 1, and the tokens of the leases that
// have them. The zero value has none. The caller serializes the calls.
type Slots struct {
	owners []queue.Token // by slot, from 1; 0: the slot is free
	free   freeSlots
}

// Len returns the number of slots.
func (s *Slots) Len() int { return max(0, len(s.owners)-1) }

// Recall appends a slot that the lease with a token has, or a free one if token is 0.
func (s *Slots) Recall(token queue.Token) (slot int) {
	if s.owners == nil {
		s.owners = make([]queue.Token, 1)
	}
	slot = len(s.owners)
	if s.owners = append(s.owners, token); token == 0 {
		s.free.add(slot)
	}
	return slot
}

// Grow appends n free slots.
func (s *Slots) Grow(n int) {
	for range n {
		s.Recall(0)
	}
}

// Reserve gives the lowest free slot to the lease with a token. It reports false if none
// is free.
func (s *Slots) Reserve(token queue.Token) (slot int, ok bool) {
	if slot, ok = s.free.take(); ok {
		s.owners[slot] = token
	}
	return slot, ok
}

// Owns reports whether the lease with a token has a slot.
func (s *Slots) Owns(slot int, token queue.Token) bool { return s.owners[slot] == token }

// Free frees a slot if the lease with a token has it.
func (s *Slots) Free(slot int, token queue.Token) {
	if s.owners[slot] == token {
		s.owners[slot] = 0
		s.free.add(slot)
	}
}
