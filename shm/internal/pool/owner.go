package pool

// A slot is one word: who owns it, or that it is free. Since nothing else
// records ownership, and each change of it is one compare-and-swap from what was
// seen, a death at any instant neither loses a slot nor gives it twice.
//
//	bit  0       granted by another, and not accepted yet
//	bit  1       abandoned: whoever held it last has died
//	bits 2–7     the owner's index
//	bits 8–63    the owner's generation, from 1
//
// A free slot is 0, or the abandoned bit alone, which the next to hold it is
// told of.
const (
	granted   = 1 << 0
	abandoned = 1 << 1
	indexAt   = 2
	eraAt     = 8
)

func isFree(slot uint64) bool { return slot&^abandoned == 0 }

func indexOf(slot uint64) int { return int(slot>>indexAt) % ParticipantsMax }

// freed is what the slot of an owner that is dead, or did not accept it, becomes.
func freed(slot uint64) uint64 {
	if slot&granted != 0 {
		return slot & abandoned // as it was when it was granted
	}
	return abandoned
}

// The state of a participant is its generation, and whether that lives. A
// generation that is gone never lives again, so whatever names it can be undone
// by anybody.
//
//	bit  0       it lives: slots may be granted to it
//	bits 8–63    the generation
const live = 1

func stateOf(era uint64) uint64 { return era<<eraAt | live }

func isLive(state uint64) bool { return state&live != 0 }

// gone is the state of a participant that was live.
func gone(state uint64) uint64 { return state &^ live }

func eraOf(slotOrState uint64) uint64 { return slotOrState >> eraAt }

// owned is the word of a slot that the participant i holds in a generation.
func owned(i int, era uint64) uint64 { return era<<eraAt | uint64(i)<<indexAt }
