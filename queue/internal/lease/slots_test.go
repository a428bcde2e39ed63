package lease_test

import (
	"testing"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/lease"
)

// Random calls are compared with a model that looks at all slots: Reserve returns the lowest
// free slot, and only its owner frees it.
func TestSlots(t *testing.T) {
	random := seeded.Rand(t)
	var s lease.Slots
	model := []queue.Token{1} // by slot, from 1; 0: free
	for token := queue.Token(2); token < 5000; token++ {
		switch random.IntN(4) {
		case 0, 1:
			want := 0
			for slot := len(model) - 1; slot > 0; slot-- {
				if model[slot] == 0 {
					want = slot
				}
			}
			slot, ok := s.Reserve(token)
			if ok != (want > 0) || ok && slot != want {
				t.Fatalf("token %d gets slot %d, %t; want %d", token, slot, ok, want)
			}
			if !ok {
				slot = s.Recall(token)
				model = append(model, 0)
			}
			model[slot] = token
		case 2:
			n := random.IntN(3)
			s.Grow(n)
			model = append(model, make([]queue.Token, n)...)
		case 3:
			if len(model) < 2 {
				continue
			}
			slot := 1 + random.IntN(len(model)-1)
			owner := model[slot]
			s.Free(slot, token) // not its owner
			if owner != 0 && !s.Owns(slot, owner) {
				t.Fatalf("slot %d was freed by another owner", slot)
			}
			if owner != 0 {
				s.Free(slot, owner)
			}
			s.Free(slot, owner+1)
			model[slot] = 0
		}
		if s.Len() != len(model)-1 {
			t.Fatalf("there are %d slots, want %d", s.Len(), len(model)-1)
		}
		for slot := 1; slot < len(model); slot++ {
			if owner := model[slot]; owner != 0 && !s.Owns(slot, owner) {
				t.Fatalf("token %d does not own slot %d", owner, slot)
			}
		}
	}
}
