package bucket

import (
	"math"
	"math/bits"
)

// The range of rates, in tokens per second. Below it a token takes longer than
// eleven days; above it, counting tokens would fill the bucket's word within a
// few years.
const (
	MinRate = 1e-6
	MaxRate = 1 << 34
)

// MaxCapacity is the largest bucket, in tokens.
const MaxCapacity = 1 << 56

// Forever is the time from the origin, in nanoseconds (nine years), that curve.when
// returns for tokens that are earned later than a curve can count.
const Forever int64 = 1 << 58

const (
	second = 1_000_000_000

	// timeBits scales nanoseconds up before they are multiplied, so that
	// even MaxRate, 17 tokens a nanosecond, has a multiplier below 2⁶⁴.
	timeBits = 5

	// maxTokens bounds every count of tokens, so that none overflows where
	// two are added and one bit is kept for the flag.
	maxTokens = 1 << 61
)

// curve is the number of tokens earned since the limiter began, as a function of
// time: base at origin, and rate tokens a second from there. A change of rate
// begins another curve at the present value of this one, so the count of tokens
// spent, which is compared with it, never has to be rewritten.
//
// The slope is mult / 2^(64+shift) tokens per 2^-timeBits nanoseconds, with 64
// significant bits, rounded up: a second's worth has been earned when a second
// is over, not a nanosecond later, and the excess stays below a quarter of a
// token in all that can be counted. One wide multiplication evaluates it without
// a division and without a rounding error that could add up.
//
// A curve is immutable.
type curve struct {
	base   int64  // tokens at the origin
	origin int64  // nanoseconds
	mult   uint64 // in [2⁶³, 2⁶⁴)
	shift  uint

	capacity int64 // tokens that an idle bucket keeps
	rate     float64
}

// newCurve returns the curve of a rate within MinRate … MaxRate.
func newCurve(rate float64, capacity int64) *curve {
	mult, shift := slope(rate)
	return &curve{
		mult:     mult,
		shift:    shift,
		capacity: capacity,
		rate:     rate,
	}
}

// slope scales a rate per second to a multiplier with its top bit set and the
// shift that goes with it:
// rate/10⁹ = mult / 2^(64-timeBits+shift).
func slope(rate float64) (mult uint64, shift uint) {
	fraction, exp := math.Frexp(rate)
	mantissa := uint64(fraction * (1 << 53))
	// The quotient by 10⁹ is in [2⁶³, 2⁶⁴) for exactly one of two scales.
	scale := 41
	if mantissa>>(64-scale) >= second {
		scale = 40
	}
	mult, rest := bits.Div64(mantissa>>(64-scale), mantissa<<scale, second)
	if rest > 0 && mult < math.MaxUint64 {
		mult++
	}
	return mult, uint(scale - exp + 53 - (64 - timeBits))
}

// earned returns the tokens earned by now. A time before the curve's origin was
// read before a change of rate and compared after it: the tokens of the origin
// have been earned by then.
func (c *curve) earned(now int64) int64 {
	tokens, _ := bits.Mul64(uint64(max(now-c.origin, 0))<<timeBits, c.mult)
	return c.base + int64(tokens>>(c.shift&63))
}

// when returns the first nanosecond at which tokens have been earned, exactly,
// or a time [Forever] past the origin.
func (c *curve) when(tokens int64) int64 {
	short := uint64(max(tokens-c.base, 0))
	scale := 64 - timeBits + int(c.shift)
	if bits.Len64(short)+scale > 127 {
		return c.origin + Forever
	}
	hi, lo := shiftLeft(short, uint(scale)) // below 2¹²⁷, and mult is not below 2⁶³: the quotient fits
	span, rest := bits.Div64(hi, lo, c.mult)
	if rest > 0 {
		span++
	}
	return c.origin + int64(min(span, uint64(Forever)))
}

// shiftLeft returns x << n as 128 bits, for n up to 127.
func shiftLeft(x uint64, n uint) (hi, lo uint64) {
	if n >= 64 {
		return x << (n - 64), 0
	}
	return x >> (64 - n), x << n
}

// follow moves the curve so that its value at now is that of before. The fraction of a token
// that before has earned by then moves the origin back by the time that it
// takes at the new rate: without that, changing a slow rate often would earn
// nothing at all. What is lost is less than a nanosecond's worth.
func (c *curve) follow(before *curve, now int64) {
	c.base = before.earned(now)
	perNano := math.Ldexp(float64(c.mult), timeBits-64-int(c.shift))
	back := int64(before.fraction(now) / perNano)
	for c.origin = now - back; c.earned(now) > c.base; {
		c.origin++ // the division above may have rounded up
	}
}

// fraction returns the part of a token, in [0, 1], that has been earned at now
// past the whole ones.
func (c *curve) fraction(now int64) float64 {
	hi, lo := bits.Mul64(uint64(max(now-c.origin, 0))<<timeBits, c.mult)
	hi &= 1<<(c.shift&63) - 1
	return math.Ldexp(float64(hi)+math.Ldexp(float64(lo), -64), -int(c.shift))
}

// spill returns the number of tokens spent once those are lost that a bucket cannot hold at
// now.
func (c *curve) spill(now, spent int64) int64 { return max(spent, c.earned(now)-c.capacity) }

// refund returns the number of tokens spent once n of them are put back, as far as the
// bucket has room for them.
func (c *curve) refund(now, spent, n int64) int64 {
	return max(spent-n, min(spent, c.earned(now)-c.capacity))
}

// charge returns the number of tokens spent with n more. A debt of more than can be counted
// is as good as one that never ends.
func charge(spent, n int64) int64 { return spent + min(n, max(maxTokens-spent, 0)) }
