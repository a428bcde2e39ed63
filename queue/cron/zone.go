package cron

import "time"

// RFC 9636, section 3.2, limits the offset of a zone from UTC to between -25 h and +26 h,
// both excluded.
const (
	offsetMax    = 26 * time.Hour
	offsetSpread = 51 * time.Hour // between any two
)

// reading returns the time that a wall clock in t's zone shows at t, as a time in UTC.
func reading(t time.Time) time.Time { return t.UTC().Add(offset(t)) }

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// nextChange returns the first moment after t at which the clock of t's zone may be set
// forward or back, or the zero time if there is none. From t to that moment the offset is
// constant.
//
// nextChange uses [time.Time.ZoneBounds] with two precautions. It ignores the start,
// which can lie before the last change in the year in which a zone adopts its present
// rule (America/Indiana/Winamac 2007, Ciudad_Juarez 2022). And it corrects the end in the
// years that only the rule covers: there the end is January 1 or the 365th day of the
// year, which on December 31 of a leap year is not after t (go.dev/issue/81583). No rule
// changes the clock on that day.
func nextChange(t time.Time) time.Time {
	_, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		const day = 24 * time.Hour
		return t.Truncate(day).Add(day)
	}
	return end
}

// nextReached returns the first tick after a moment for a calendar of fixed times. A time
// ticks at the first moment when the clock shows it or a later time. So the times that
// have not ticked are those after the highest reading so far, and they tick in their
// order. Clock changes in either direction need no special case.
func (c calendar) nextReached(after time.Time) (time.Time, bool) {
	due, ok := c.next(highest(after))
	if !ok {
		return time.Time{}, false
	}
	return reached(due, after.Location()), true
}

// highest returns the latest reading that t's clock has shown up to t. It is later than
// the reading at t if the clock has been set back shortly before.
func highest(t time.Time) time.Time {
	top := reading(t)
	// Readings from before t-offsetSpread are earlier than that at t, whatever the
	// offsets.
	for u := t.Add(-offsetSpread); ; {
		change := nextChange(u)
		if change.IsZero() || change.After(t) {
			return top
		}
		if last := reading(change.Add(-1)); last.After(top) {
			top = last
		}
		u = change
	}
}

// reached returns the first moment when the clock of loc shows at least r.
func reached(r time.Time, loc *time.Location) time.Time {
	for u := r.Add(-offsetMax).In(loc); ; { // no clock shows r yet
		t := r.Add(-offset(u)).In(loc)
		if t.Before(u) {
			t = u // the clock was set forward, over r
		}
		change := nextChange(u)
		if change.IsZero() || t.Before(change) {
			return t
		}
		u = change
	}
}

// nextShown returns the first moment after the given one when the clock shows the
// beginning of a matching minute. It searches each interval between two clock changes, in
// which the offset is constant.
//
// It reports false if there is no such moment within 400 years, after which the calendar
// and the rules of the zone repeat.
func (c calendar) nextShown(after time.Time) (time.Time, bool) {
	from := reading(after)
	for u, last := after, after.AddDate(400, 0, 0); u.Before(last); {
		due, ok := c.next(from)
		if !ok {
			break
		}
		t, change := due.Add(-offset(u)).In(after.Location()), nextChange(u)
		if change.IsZero() || t.Before(change) {
			return t, true
		}
		u, from = change, reading(change).Add(-1) // the change itself is a candidate
	}
	return time.Time{}, false
}
