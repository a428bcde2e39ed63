package retry

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parse reads a policy from text, as a flag or a stored record has it:
//
//	3                                three attempts
//	5,1s                             five, the first delay 1 s
//	5,200ms,2x,30s                   from 200 ms, doubling, up to 30 s
//	5,200ms,2x,30s,decorrelated      the same, with jitter
//	5,full                           the defaults, with another jitter
//
// The parts differ in form, and a part that is left out is unset: a whole
// number is the attempts, a number with an x is the factor, the first duration
// is the base and the second is the max, a word is the jitter. Space around a
// part is ignored. The error wraps [ErrPolicy] and says what is wrong with which
// part; a 0 that is written out is an error.
func Parse(text string) (Policy, error) {
	var (
		p    Policy
		seen parts
	)
	for part := range strings.SplitSeq(text, ",") {
		if err := seen.read(&p, strings.TrimSpace(part)); err != nil {
			return Policy{}, fmt.Errorf("%w %q: %w", ErrPolicy, text, err)
		}
	}
	if problems := p.problems(); len(problems) > 0 {
		return Policy{}, fmt.Errorf("%w %q: %s", ErrPolicy, text, strings.Join(problems, "; "))
	}
	return p, nil
}

// parts records which parts of a policy's text have been read.
type parts struct{ attempts, base, factor, max, jitter bool }

// read parses part and sets the field of p that it is for.
func (seen *parts) read(p *Policy, part string) error {
	if jitter, ok := parseJitter(part); ok {
		p.Jitter = jitter
		return once(&seen.jitter, true, part, "jitter")
	}
	if n, err := strconv.Atoi(part); err == nil {
		p.Attempts = n
		return once(&seen.attempts, n >= 1, part, "number of attempts")
	}
	if digits, ok := strings.CutSuffix(part, "x"); ok {
		factor, err := strconv.ParseFloat(digits, 64)
		p.Factor = factor
		return once(&seen.factor, err == nil && factor >= 1, part, "factor")
	}
	d, err := time.ParseDuration(part)
	if err != nil {
		return fmt.Errorf("%q is none of attempts (3), delay (200ms), factor (2x) and jitter (%s)",
			part, strings.Join(jitterNames[:], ", "))
	}
	if !seen.base {
		p.Base = d
		return once(&seen.base, d > 0, part, "base delay")
	}
	p.Max = d
	return once(&seen.max, d > 0, part, "max delay")
}

// once records that a part has been read. It returns an error if such a part had
// been read before, or if its value is not sensible.
func once(seen *bool, sensible bool, part, name string) error {
	if *seen {
		return fmt.Errorf("%q is a second %s", part, name)
	}
	*seen = true
	if !sensible {
		return fmt.Errorf("%q is not a valid %s; leave it out for the default", part, name)
	}
	return nil
}

// String returns p in the form that [Parse] reads, with the defaults for what is
// unset. So a policy with an unset field has the same text as one with its default.
func (p Policy) String() string {
	p = p.withDefaults()
	factor := strconv.FormatFloat(p.Factor, 'g', -1, 64)
	return fmt.Sprintf("%d,%v,%sx,%v,%v", p.Attempts, p.Base, factor, p.Max, p.Jitter)
}

// MarshalText returns the text of String, or an error if Validate refuses the
// policy.
func (p Policy) MarshalText() ([]byte, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads the text that [Parse] accepts.
func (p *Policy) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}
