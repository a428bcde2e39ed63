package backlog

import "math/bits"

// Bounds is the maximum number of slots in use, and the caps of the tiers.
type Bounds struct {
	max   int
	given [Tiers]int // the caps as given
	caps  [Tiers]int // and as resolved against max
}

// Max returns the maximum number of slots in use at once.
func (b *Bounds) Max() int { return b.max }

// Caps returns the caps in force.
func (b *Bounds) Caps() [Tiers]int { return b.caps }

// SetMax changes the maximum; caps are resolved again.
func (b *Bounds) SetMax(maximum int) { b.set(maximum, b.given) }

// SetCaps changes the caps.
func (b *Bounds) SetCaps(caps [Tiers]int) { b.set(b.max, caps) }

func (b *Bounds) set(maximum int, caps [Tiers]int) {
	*b = Bounds{max: maximum, given: caps, caps: Resolve(maximum, caps)}
}

// highest returns the highest of some tiers that is below its cap, or -1.
func (b *Bounds) highest(running int, tiers uint8) (tier int) {
	for tiers != 0 {
		tier = bits.Len8(tiers) - 1
		if running < b.caps[tier] {
			return tier
		}
		tiers &^= 1 << tier
	}
	return -1
}

// Resolve returns the effective caps for the caps of set, where 0 is an unset
// tier. An unset tier has the cap of the tier below it. The tiers above the
// topmost set one have maximum, and those below the bottommost set one have
// its cap. No cap is higher than maximum.
func Resolve(maximum int, set [Tiers]int) [Tiers]int {
	var caps [Tiers]int
	below, top := 0, -1
	for i, limit := range set {
		if limit > 0 {
			top = i
			if below == 0 {
				below = limit
			}
		}
	}
	for i, limit := range set {
		switch {
		case i > top:
			below = maximum
		case limit > 0:
			below = limit
		}
		caps[i] = min(below, maximum)
	}
	return caps
}
