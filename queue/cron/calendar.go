package cron

import "time"

// set is a set of small numbers, one bit for each.
type set uint64

func (s set) has(v int) bool { return s>>v&1 == 1 }

// calendar is the set of minutes that match the five fields of an expression. It has no
// time zone: its times are readings of a wall clock, represented as times in UTC so that
// a day has 24 hours and every minute occurs once. zone.go converts readings into
// moments.
type calendar struct {
	minutes, hours, days, months, weekdays set

	bothDays bool // a day must match both days and weekdays; otherwise one of them is enough
	wild     bool // minute or hour begins with *: see the package comment on clock changes
}

// next returns the first matching minute after a reading. It reports false if there is
// none up to the year 9999.
//
// Parse rejects calendars without any match. The longest gap is 40 years, between two
// February 29 on the same day of the week across a year like 1900 or 2100; next skips
// whole months, so that takes about 480 steps.
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

// comes reports whether any day ever matches.
//
// It can ignore days of the week: if one of days and weekdays is enough, weekdays match
// every week, and if both must match, each day of a month, including February 29, falls
// on each day of the week within the 400 years after which the Gregorian calendar
// repeats.
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

// longestMonth returns the number of days of the longest of the months.
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
