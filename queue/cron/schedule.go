package cron

import (
	"fmt"
	"time"
)

// yearMax is the last year that a tick may be in. Ticks are stored, and no later
// year has a form in RFC 3339, which [time.Time] is marshalled to.
const yearMax = 9999

// A Schedule is a sequence of moments, its ticks. [Parse] makes one.
//
// It is an immutable value: copies may be used from many goroutines, and two that
// are equal have the same ticks. (The opposite does not hold: "@daily" and
// "0 0 * * *" tick alike and are not equal.) The zero Schedule never ticks.
type Schedule struct {
	text     string
	everySec int64 // between two ticks of @every; 0 if the calendar counts
	calendar calendar
}

// Next returns the first tick after a time, in that time's location. The time
// itself is not a candidate, so that passing one tick in gives the next one.
// Ticks are whole seconds and carry no monotonic clock reading.
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

// Between returns the ticks after from and not after to, oldest first and in
// from's location, but no more than limit of them. It serves to find the ticks
// that were missed while nobody looked; what to do about them is the caller's
// policy. The next ones of a result that was cut short are those between its last
// tick and to.
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

// String returns the text that [Parse] was given, in lower case and with single
// spaces. Parse reads it as an equal Schedule. The zero Schedule's text is "".
func (s Schedule) String() string { return s.text }

// MarshalText returns what String does. The zero Schedule has no text that could
// be read again, so it is an error, which wraps [ErrExpr].
func (s Schedule) MarshalText() ([]byte, error) {
	if s.text == "" {
		return nil, fmt.Errorf("%w: a schedule that was not parsed has no text", ErrExpr)
	}
	return []byte(s.text), nil
}

// UnmarshalText reads what [Parse] does, and leaves s alone on an error.
func (s *Schedule) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}
