package cron

import "time"

// RFC 9636, section 3.2, keeps the offsets of a zone from UTC between -25 h and
// +26 h, both excluded.
const (
	offsetMax    = 26 * time.Hour
	offsetSpread = 51 * time.Hour // between any two
)

// reading returns what a wall clock shows at t in t's zone, as a time in UTC.
func reading(t time.Time) time.Time { return t.UTC().Add(offset(t)) }

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// nextChange returns the first moment after t at which t's clock may be set
// forward or back, or the zero time if that is over. From t to there the clock
// runs evenly.
//
// Here is all that we believe of [time.Time.ZoneBounds]. The start that it
// returns can lie before the last change, in the year in which a zone comes under
// its present rule (America/Indiana/Winamac 2007, Ciudad_Juarez 2022). And in the
// years that only the rule covers, the end is January 1 or the 365th day of the
// year, which on December 31 of a leap year is not after t: go.dev/issue/81583.
// No rule changes the clock on that day.
func nextChange(t time.Time) time.Time {
	_, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		const day = 24 * time.Hour
		return t.Truncate(day).Add(day)
	}
	return end
}

// nextReached returns the first tick after a moment for a calendar of fixed
// times. A time ticks at the first moment when the clock shows it or something
// later, so those are due that the clock has not reached yet; and the clock
// reaches what it has not reached in order, so the next of them is the first to
// tick. Clocks that are set forward or back make no case of their own.
func (c calendar) nextReached(after time.Time) (time.Time, bool) {
	due, ok := c.next(highest(after))
	if !ok {
		return time.Time{}, false
	}
	return reached(due, after.Location()), true
}

// highest returns the latest reading that t's clock has shown up to t. That is
// not always what it shows at t: the clock may have been set back.
func highest(t time.Time) time.Time {
	top := reading(t)
	// What was shown before then was earlier, whatever the offsets.
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

// nextShown returns the first moment after another when the clock shows the
// beginning of a minute that matches. It looks from one change of the clock to
// the next, because between them the clock runs evenly.
//
// It reports false if there is no such moment within 400 years. After those the
// calendar repeats, and with it the zone's rules, which go by the calendar.
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
