package pool

// A slot is one word: its owner, or free. Ownership is recorded nowhere else, and each
// change is one compare-and-swap from the value that was read, so a death at any instant
// neither loses a slot nor gives it to two owners.
//
//	bit  0       granted, and not accepted yet
//	bit  1       abandoned: the previous holder has died
//	bits 2–7     the owner's index
//	bits 8–63    the owner's generation, from 1
//
// A free slot is 0, or the abandoned bit alone, which Take reports to the next holder.
const (
	granted      = 1 << 0
	abandoned    = 1 << 1
	indexAt      = 2
	generationAt = 8
)

func isFree(slot uint64) bool { return slot&^abandoned == 0 }

func indexOf(slot uint64) int { return int(slot>>indexAt) % ParticipantsMax }

// freed returns the new value of a slot whose owner is dead or has not accepted it.
func freed(slot uint64) uint64 {
	if slot&granted != 0 {
		return slot & abandoned // as before the grant
	}
	return abandoned
}

// The state of a participant is its generation, and whether that is alive. A
// generation that is gone never becomes alive again, so any participant may undo what
// refers to it.
//
//	bit  0       alive: slots may be granted to it
//	bits 8–63    the generation
const live = 1

func stateOf(generation uint64) uint64 { return generation<<generationAt | live }

func isLive(state uint64) bool { return state&live != 0 }

// gone returns the state of a participant that was alive, as dead.
func gone(state uint64) uint64 { return state &^ live }

func generationOf(slotOrState uint64) uint64 { return slotOrState >> generationAt }

// owned returns the word of a slot that participant i holds in a generation.
func owned(i int, generation uint64) uint64 { return generation<<generationAt | uint64(i)<<indexAt }
