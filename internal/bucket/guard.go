package bucket

import "math/bits"

// guard keeps a tier from starving. It counts for how long each tier has been passed over:
// for how many nanoseconds higher tiers have waited, and so taken all tokens, since the tier
// last got any. To be the head of the queue for a moment does not count as progress, nor does
// a removal. A tier that has been passed over for [GuardAfter] is overdue: the bucket admits
// it into debt. The caller says which tiers are passed over, as a set of bits, and since
// when; time in which a debt was repaid does not count, for then no tier gets any.
type guard struct {
	last   int64 // until when the time has been counted
	behind [Tiers]int64
}

// age counts the time between from and now, as far as it has not been counted yet, for the
// tiers that were passed over.
func (g *guard) age(from, now int64, passed uint8) {
	waited := max(now-max(from, g.last), 0)
	g.last = now
	for ; passed != 0; passed &= passed - 1 {
		g.behind[bits.TrailingZeros8(passed)] += waited
	}
}

// served begins the time of a tier anew, which has got tokens or was empty.
func (g *guard) served(t int) { g.behind[t] = 0 }

// longest returns which tier of a set has been passed over for longest, and of several the
// highest, or -1 if the set is empty.
func (g *guard) longest(passed uint8) int {
	found := -1
	for ; passed != 0; passed &= passed - 1 {
		if t := bits.TrailingZeros8(passed); found < 0 || g.behind[t] >= g.behind[found] {
			found = t
		}
	}
	return found
}

// overdue returns which tier of a set has to be admitted, or -1.
func (g *guard) overdue(passed uint8) int {
	if t := g.longest(passed); t >= 0 && g.dueIn(t) == 0 {
		return t
	}
	return -1
}

// dueIn returns how much longer a tier has to be passed over until it is overdue.
func (g *guard) dueIn(t int) int64 { return max(GuardAfter-g.behind[t], 0) }
