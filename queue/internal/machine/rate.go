package machine

import (
	"math"
	"math/bits"

	"github.com/stintgo/stint/queue"
)

// rate is a limit on starts: the generic cell rate algorithm (ITU-T I.371) in its virtual
// scheduling form. A start is allowed from the theoretical arrival time less the
// tolerance on, and moves that time on by one interval.
//
// It does not use the token bucket of the in-process limiter, which is lock-free and
// has a queue of waiters: here the lock is held and tasks wait in their queue, and the
// state of a rate, of which each key may have one, takes only 16 bytes.
type rate struct {
	interval fixed // the time between two starts
	burst    int64 // the number of starts at once after an idle time; 0: no limit
}

// fixed is a time or a duration in nanoseconds, with a fraction in units of 2⁻³² ns: at a
// million starts a second the error of the rate is below 10⁻¹².
type fixed struct {
	ns   int64
	frac uint32
}

func (f fixed) plus(g fixed) fixed {
	sum := uint64(f.frac) + uint64(g.frac)
	return fixed{f.ns + g.ns + int64(sum>>32), uint32(sum)}
}

func (f fixed) minus(g fixed) fixed {
	ns := f.ns - g.ns
	if f.frac < g.frac {
		ns-- // the fraction wraps around
	}
	return fixed{ns, f.frac - g.frac}
}

func (f fixed) before(g fixed) bool { return f.ns < g.ns || f.ns == g.ns && f.frac < g.frac }

func newRate(r queue.Rate) rate {
	if r.PerSecond <= 0 {
		return rate{}
	}
	whole, part := math.Modf(min(1e9/r.PerSecond, math.MaxInt64/4))
	return rate{fixed{int64(whole), uint32(part * (1 << 32))}, int64(max(r.Burst, 1))}
}

// limited reports whether there is a limit.
func (r rate) limited() bool { return r.burst > 0 }

// from returns when the next start is allowed, given the theoretical arrival time.
func (r rate) from(arrival fixed) int64 {
	at := arrival.minus(r.intervals(r.burst - 1))
	if at.frac > 0 {
		at.ns++
	}
	return at.ns
}

// intervals returns the time of n starts, or 73 years if that is less.
func (r rate) intervals(n int64) fixed {
	if n > 0 && r.interval.ns > math.MaxInt64/4/n {
		return fixed{math.MaxInt64 / 4, 0}
	}
	high, low := bits.Mul64(uint64(n), uint64(r.interval.frac))
	return fixed{n*r.interval.ns + int64(high<<32|low>>32), uint32(low)}
}

// spend counts a start at a time, and returns the new theoretical arrival time.
func (r rate) spend(arrival fixed, now int64) fixed {
	if at := (fixed{now, 0}); arrival.before(at) {
		arrival = at
	}
	return arrival.plus(r.interval)
}

// atMost returns a theoretical arrival time, or that after a whole burst at a time if that is
// earlier.
func (r rate) atMost(arrival fixed, now int64) fixed {
	if most := (fixed{now, 0}).plus(r.intervals(r.burst)); r.limited() && most.before(arrival) {
		return most
	}
	return arrival
}

// unspend undoes spend, and returns the theoretical arrival time without that start.
func (r rate) unspend(arrival fixed) fixed { return arrival.minus(r.interval) }
