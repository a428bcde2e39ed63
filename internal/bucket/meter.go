package bucket

import "fmt"

// Never is the wait, in nanoseconds, for an event that does not depend on the time.
const Never = Forever

// Meter is the arithmetic of a bucket whose count of tokens spent is kept
// elsewhere, in memory that processes share or in a database. It is immutable: its
// methods compute the next count from the time and the present count. The bucket was
// full at time 0.
type Meter struct{ curve }

// NewMeter returns the meter of a rate within [MinRate] and [MaxRate] tokens a
// second, and a capacity from 1 to [MaxCapacity] tokens.
func NewMeter(rate float64, capacity int64) Meter {
	m := Meter{*newCurve(rate, capacity)}
	m.base = capacity
	return m
}

// Take takes n ≥ 1 tokens at the time now from a bucket that has spent the given
// number. If n is above the capacity, Take takes a part of n, a full bucket. If
// taken is 0, again is how many nanoseconds to wait until enough tokens are
// available, if no call takes any meanwhile; otherwise after is the new count.
//
// A debt is admitted whatever the bucket holds, unless it is in debt: then again
// is how long that lasts.
func (m Meter) Take(now, spent, n int64, debt bool) (after, taken, again int64) {
	spent = m.spill(now, spent)
	least := min(n, m.capacity)
	holds := m.earned(now) - spent
	switch {
	case debt && holds >= 0:
		return charge(spent, n), n, 0
	case debt:
		return 0, 0, m.until(now, spent)
	case holds < least:
		return 0, 0, m.until(now, spent+least)
	}
	return spent + least, least, 0
}

// Return puts n tokens back, as far as the bucket has room for them.
func (m Meter) Return(now, spent, n int64) (after int64) {
	return m.refund(now, spent, n)
}

// Tokens returns what the bucket holds: negative in debt.
func (m Meter) Tokens(now, spent int64) int64 { return m.earned(now) - m.spill(now, spent) }

// Debt returns how many nanoseconds the bucket will be in debt.
func (m Meter) Debt(now, spent int64) int64 {
	if m.earned(now) >= spent {
		return 0
	}
	return m.until(now, spent)
}

// Rate returns the rate in tokens a second, and the capacity in tokens.
func (m Meter) Rate() (tokensPerSecond float64, capacity int64) { return m.rate, m.capacity }

// until returns how many nanoseconds it takes to earn tokens that have not been
// earned yet.
func (m Meter) until(now, tokens int64) int64 { return max(m.when(tokens)-now, 1) }

// ValidateRate reports a rate that no bucket can have.
func ValidateRate(rate float64) error {
	if !(rate >= MinRate && rate <= MaxRate) { // a NaN is neither
		return fmt.Errorf("rate %v is outside %g to %d tokens per second", rate, MinRate, int64(MaxRate))
	}
	return nil
}

// Validate reports a rate or a capacity that no bucket can have.
func Validate(rate float64, capacity int64) error {
	if err := ValidateRate(rate); err != nil {
		return err
	}
	if capacity < 1 || capacity > MaxCapacity {
		return fmt.Errorf("capacity %d is outside 1 to %d tokens", capacity, int64(MaxCapacity))
	}
	return nil
}
