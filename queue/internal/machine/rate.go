package machine

import (
	"math"

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
	tolerance := (r.burst - 1) * r.interval.ns
	if r.burst > 1 && r.interval.ns > math.MaxInt64/4/(r.burst-1) {
		tolerance = math.MaxInt64 / 4
	}
	if arrival.frac > 0 {
		arrival.ns++
	}
	return arrival.ns - tolerance - int64(uint64(r.burst-1)*uint64(r.interval.frac)>>32)
}

// spend counts a start at a time, and returns the new theoretical arrival time.
func (r rate) spend(arrival fixed, now int64) fixed {
	if at := (fixed{now, 0}); arrival.before(at) {
		arrival = at
	}
	return arrival.plus(r.interval)
}

// unspend undoes spend, and returns the theoretical arrival time without that start.
func (r rate) unspend(arrival fixed) fixed {
	if arrival.frac < r.interval.frac {
		return fixed{arrival.ns - r.interval.ns - 1, arrival.frac - r.interval.frac} // the fraction wraps around: borrow 1 ns
	}
	return fixed{arrival.ns - r.interval.ns, arrival.frac - r.interval.frac}
}
