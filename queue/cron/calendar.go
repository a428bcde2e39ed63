package cron

import "time"

// set is a set of small numbers, one bit for each.
type set uint64

func (s set) has(v int) bool { return s>>v&1 == 1 }

// calendar is what five fields say: the minutes that match. It knows nothing of
// zones. Its times are readings of a wall clock, held as times in UTC so that a
// day has 24 hours and every minute comes once; zone.go turns readings into
// moments.
type calendar struct {
	minutes, hours, days, months, weekdays set

	bothDays bool // a day has to match days and weekdays; else one of them is enough
	wild     bool // follows the clock through its changes, as the package comment says
}

// next returns the first minute after a reading that matches. It reports false if
// none comes up to the year 9999.
//
// Parse has seen to it that one comes. The longest that it takes is 40 years,
// from February 29 on some day of the week to the next such day over a year like
// 1900 or 2100; whole months are passed over at once, so that is 480 steps.
func (c calendar) next(after time.Time) (time.Time, bool) {
	t := after.Truncate(time.Minute).Add(time.Minute)
	for t.Year() <= yearMax {
		switch {
		case !c.months.has(int(t.Month())):
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		case !c.matchesDay(t):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
		case !c.hours.has(t.Hour()):
			t = t.Truncate(time.Hour).Add(time.Hour)
		case !c.minutes.has(t.Minute()):
			t = t.Add(time.Minute)
		default:
			return t, true
		}
	}
	return time.Time{}, false
}

func (c calendar) matchesDay(t time.Time) bool {
	day, weekday := c.days.has(t.Day()), c.weekdays.has(int(t.Weekday()))
	if c.bothDays {
		return day && weekday
	}
	return day || weekday
}

// comes reports whether any day matches, ever.
//
// Days of the week need no look: if one of them is enough, it comes each week,
// and if both have to match, each day of a month falls on each day of the week
// in some year, February 29 too, within the 400 years after which the Gregorian
// calendar repeats.
func (c calendar) comes() bool {
	if !c.bothDays {
		return true
	}
	for day := 1; day <= c.longestMonth(); day++ {
		if c.days.has(day) {
			return true
		}
	}
	return false
}

// longestMonth returns how many days the longest of the months has.
func (c calendar) longestMonth() (days int) {
	const leapYear = 2000
	for month := time.January; month <= time.December; month++ {
		if c.months.has(int(month)) {
			// The day before the first of the month that follows.
			days = max(days, time.Date(leapYear, month+1, 0, 0, 0, 0, 0, time.UTC).Day())
		}
	}
	return days
}
