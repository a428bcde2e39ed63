package backlog

import "math/bits"

// Config is what a [Backlog] admits. The zero value admits nothing, because its
// Max is 0.
type Config struct {
	// Max is the maximum number of slots in use at once.
	Max int
	// Caps are the caps of the tiers as the user set them, 0 for unset.
	Caps [Tiers]int
	// PerKey is the maximum number of entries of one key that run at once, 0 for no limit.
	PerKey int
	// KeyLimits are the limits of single keys, which override PerKey, 0 for no limit. The
	// map must not be changed later.
	KeyLimits map[string]int
	// SharedLimits are limits of single keys too, for those without one in KeyLimits. Several
	// backlogs may have the same map. After a change of it, the caller calls [Keys.Review] for
	// each key that it concerns.
	SharedLimits map[string]int
	// Share returns the weight of a key in the fairness between keys, at least
	// 1. Nil gives every key the same.
	Share func(key string) int
	// Turned is called when a key is set aside, because it is at its limit or blocked, and then
	// [Keys.HasRoom] is false; and when it has room again. It must not call the backlog. Nil does nothing.
	Turned func(key string, room bool)
}

// Resolve gives the effective caps of set under max. An unset tier (0)
// inherits the cap of the tier just below it; tiers above the topmost set one
// get max; unset tiers below the bottommost set one get that one's; and every
// cap is at most max.
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

// slots is the maximum number of slots in use, and the caps of the tiers.
type slots struct {
	max   int
	given [Tiers]int // the caps as given
	caps  [Tiers]int // and as resolved against max
}

func (s *slots) set(maximum int, caps [Tiers]int) {
	*s = slots{max: maximum, given: caps, caps: Resolve(maximum, caps)}
}

// highest returns the highest of some tiers that is below its cap, or -1.
func (s *slots) highest(running int, tiers uint8) (tier int) {
	for tiers != 0 {
		tier = bits.Len8(tiers) - 1
		if running < s.caps[tier] {
			return tier
		}
		tiers &^= 1 << tier
	}
	return -1
}

// Max returns the maximum number of slots in use at once.
func (b *Backlog[T]) Max() int { return b.slots.max }

// Caps returns the caps in force.
func (b *Backlog[T]) Caps() [Tiers]int { return b.slots.caps }

// SetMax changes the maximum; caps are resolved again.
func (b *Backlog[T]) SetMax(maximum int) { b.slots.set(maximum, b.slots.given) }

// SetCaps changes the caps.
func (b *Backlog[T]) SetCaps(caps [Tiers]int) { b.slots.set(b.slots.max, caps) }
