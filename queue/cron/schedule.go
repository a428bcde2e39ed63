package cron

import (
	"fmt"
	"time"
)

// yearMax is the last year in which a schedule ticks. Ticks are stored in RFC 3339, the
// format to which [time.Time] is marshaled, and it cannot represent later years.
const yearMax = 9999

// A Schedule is a sequence of moments, its ticks. [Parse] makes one.
//
// A Schedule is an immutable value and safe for concurrent use. Equal schedules have the
// same ticks; the converse does not hold, because "@daily" and "0 0 * * *" have the same
// ticks but are not equal. The zero Schedule never ticks.
type Schedule struct {
	text     string
	everySec int64 // the interval of @every; 0 if calendar defines the ticks
	calendar calendar
}

// Next returns the first tick after the given time, in its location. The time itself is
// excluded, so that the result of one call is the argument for the next tick. Ticks are
// whole seconds and have no monotonic clock reading.
//
// It reports false if there is none: for the zero Schedule, for ticks after the
// year 9999, and for the rare schedule that its zone always skips (all Sundays
// from March 25 to 31 from 2 to 3 o'clock in Berlin, if its minutes are "*").
func (s Schedule) Next(after time.Time) (tick time.Time, ok bool) {
	switch {
	case s.text == "": // the zero Schedule
	case s.everySec > 0:
		tick, ok = nextMultiple(after, s.everySec), true
	case s.calendar.wild:
		tick, ok = s.calendar.nextShown(after)
	default:
		tick, ok = s.calendar.nextReached(after)
	}
	if !ok || tick.Year() > yearMax {
		return time.Time{}, false
	}
	return tick, true
}

// nextMultiple returns the first moment after t whose Unix time is a multiple of
// everySec.
func nextMultiple(t time.Time, everySec int64) time.Time {
	now := t.Unix()
	past := now % everySec
	if past < 0 { // before 1970; Go's remainder has the sign of the dividend
		past += everySec
	}
	return time.Unix(now+(everySec-past), 0).In(t.Location())
}

// Between returns at most limit ticks after from and not after to, oldest first and in
// the location of from. Use it to find ticks that were missed while the program did not
// run; the caller decides what to do about them. If the limit cut the result short, call
// Between again with its last tick as from.
func (s Schedule) Between(from, to time.Time, limit int) []time.Time {
	var ticks []time.Time
	for len(ticks) < limit {
		tick, ok := s.Next(from)
		if !ok || tick.After(to) {
			break
		}
		ticks = append(ticks, tick)
		from = tick
	}
	return ticks
}

// String returns the text that was passed to [Parse], in lower case and with single
// spaces. Parse converts it to an equal Schedule. The text of the zero Schedule is "".
func (s Schedule) String() string { return s.text }

// MarshalText returns the text of String. For the zero Schedule, whose text Parse
// rejects, it returns an error that wraps [ErrExpr].
func (s Schedule) MarshalText() ([]byte, error) {
	if s.text == "" {
		return nil, fmt.Errorf("%w: a schedule that was not parsed has no text", ErrExpr)
	}
	return []byte(s.text), nil
}

// UnmarshalText sets s to the result of [Parse]. After an error s is unchanged.
func (s *Schedule) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}
