package cron_test

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // the zones of these tests, for machines without zone data

	"github.com/stintgo/stint/queue/cron"
)

func day(year, month, day int) time.Time {
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
}

// nextCase lists the consecutive ticks after a time.
type nextCase struct {
	expr  string
	after string
	want  []string
}

// check computes the listed ticks, each from the one before.
func (c nextCase) check(t *testing.T, layout string, loc *time.Location) {
	t.Helper()
	s := parse(t, c.expr)
	at, err := time.ParseInLocation(layout, c.after, loc)
	if err != nil {
		t.Fatal(err)
	}
	at = at.In(loc)
	var got []string
	for range c.want {
		tick, ok := s.Next(at)
		if !ok {
			break
		}
		if tick.Location() != loc {
			t.Errorf("%q after %v: the tick is in %v", c.expr, at, tick.Location())
		}
		got = append(got, tick.Format(layout))
		at = tick
	}
	if !slices.Equal(got, c.want) {
		t.Errorf("%q in %v after %s:\ngot  %q\nwant %q", c.expr, loc, c.after, got, c.want)
	}
}

// TestC8_CronExamplesOfCrontab checks the dates of the examples in the manual page
// crontab(5), and edge cases of the calendar.
func TestC8_CronExamplesOfCrontab(t *testing.T) {
	tests := []nextCase{
		// Five minutes after midnight, every day.
		{"5 0 * * *", "2026-12-30 00:05", []string{"2026-12-31 00:05", "2027-01-01 00:05"}},
		// At 14:15 on the first of every month.
		{"15 14 1 * *", "2026-11-20 12:00", []string{"2026-12-01 14:15", "2027-01-01 14:15"}},
		// At 22:00 on weekdays; 2026-11-20 is a Friday.
		{"0 22 * * 1-5", "2026-11-20 21:59", []string{"2026-11-20 22:00", "2026-11-23 22:00", "2026-11-24 22:00"}},
		// 23 minutes after midnight, 2 am, 4 am and so on.
		{"23 0-23/2 * * *", "2026-11-20 20:23", []string{"2026-11-20 22:23", "2026-11-21 00:23", "2026-11-21 02:23"}},
		// At 04:05 every Sunday.
		{"5 4 * * sun", "2026-11-20 00:00", []string{"2026-11-22 04:05", "2026-11-29 04:05"}},
		// At 04:30 on the 1st and 15th of each month, plus every Friday.
		{
			"30 4 1,15 * 5", "2026-05-14 00:00",
			[]string{"2026-05-15 04:30", "2026-05-22 04:30", "2026-05-29 04:30", "2026-06-01 04:30", "2026-06-05 04:30"},
		},
		// The same rule when a field begins with *: both have to match.
		{"0 0 13 * *", "2026-11-01 00:00", []string{"2026-11-13 00:00", "2026-12-13 00:00"}},
		{"0 0 * * 5", "2026-11-01 00:00", []string{"2026-11-06 00:00", "2026-11-13 00:00"}},
		{"0 0 */2 * mon", "2026-11-01 00:00", []string{"2026-11-09 00:00", "2026-11-23 00:00", "2026-12-07 00:00"}},
		{"0 0 1-7 * */7", "2026-11-01 00:00", []string{"2026-12-06 00:00", "2027-01-03 00:00"}},
		{"0 0 1,31 * 0-6", "2026-11-01 00:00", []string{"2026-11-02 00:00", "2026-11-03 00:00"}},
		{"0 0 *,1 * 1", "2026-11-01 00:00", []string{"2026-11-02 00:00", "2026-11-09 00:00"}},
		{"0 0 1,* * 1", "2026-11-01 00:00", []string{"2026-11-02 00:00", "2026-11-03 00:00"}},

		{"* * * * *", "2026-12-31 23:58", []string{"2026-12-31 23:59", "2027-01-01 00:00", "2027-01-01 00:01"}},
		{"59 23 31 12 *", "2026-12-31 23:58", []string{"2026-12-31 23:59", "2027-12-31 23:59"}},
		{"0 0 31 * *", "2026-01-31 00:00", []string{"2026-03-31 00:00", "2026-05-31 00:00", "2026-07-31 00:00"}},
		{"0 0 30 1,2 *", "2026-01-30 00:00", []string{"2027-01-30 00:00"}},
		{"0 0 30 2 mon", "2026-02-20 00:00", []string{"2026-02-23 00:00", "2027-02-01 00:00"}},
		{"0 0 29 2 *", "2026-01-01 00:00", []string{"2028-02-29 00:00", "2032-02-29 00:00"}},
		{"0 0 29 2 *", "1896-03-01 00:00", []string{"1904-02-29 00:00"}},
		// February 29 on a Sunday: 28 years apart, and 40 over a year like 2100.
		{"0 0 29 2 */7", "2026-01-01 00:00", []string{"2032-02-29 00:00", "2060-02-29 00:00", "2088-02-29 00:00"}},
		{"0 0 29 2 */7", "2088-03-01 00:00", []string{"2128-02-29 00:00"}},
		{"0 12 * 1-3,11 */6", "2026-03-28 12:00", []string{"2026-03-29 12:00", "2026-11-01 12:00", "2026-11-07 12:00"}},

		{"@hourly", "2026-11-20 23:59", []string{"2026-11-21 00:00", "2026-11-21 01:00"}},
		{"@weekly", "2026-11-20 00:00", []string{"2026-11-22 00:00", "2026-11-29 00:00"}},
		{"@monthly", "2026-11-20 00:00", []string{"2026-12-01 00:00", "2027-01-01 00:00"}},
		{"@yearly", "2026-11-20 00:00", []string{"2027-01-01 00:00", "2028-01-01 00:00"}},
	}
	for _, test := range tests {
		test.check(t, "2006-01-02 15:04", time.UTC)
	}
}

// TestC8_CronEvery checks that the ticks of @every are multiples since the epoch in every
// zone, so that the time of day varies if the duration does not divide a day.
func TestC8_CronEvery(t *testing.T) {
	tests := []nextCase{
		{"@every 5m", "2026-11-20T12:03:01Z", []string{"2026-11-20T12:05:00Z", "2026-11-20T12:10:00Z"}},
		{"@every 90s", "2026-11-20T00:00:00Z", []string{"2026-11-20T00:01:30Z", "2026-11-20T00:03:00Z"}},
		{"@every 7h", "1970-01-01T00:00:00Z", []string{
			"1970-01-01T07:00:00Z", "1970-01-01T14:00:00Z", "1970-01-01T21:00:00Z", "1970-01-02T04:00:00Z",
		}},
		{"@every 24h", "1970-01-01T23:59:59.999999999Z", []string{"1970-01-02T00:00:00Z"}},
		{"@every 1s", "1969-12-31T23:59:58.5Z", []string{"1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"}},
		{"@every 1h", "1969-12-31T22:30:00Z", []string{
			"1969-12-31T23:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z",
		}},
		{"@every 2562047h", "2026-01-01T00:00:00Z", []string{"2262-04-11T23:00:00Z"}},
	}
	for _, test := range tests {
		test.check(t, time.RFC3339, time.UTC)
	}
	// Neither a zone nor a clock change has an effect.
	berlin := zone(t, "Europe/Berlin")
	nextCase{"@every 6h", "2026-10-24T20:00:00+02:00", []string{
		"2026-10-25T02:00:00+02:00", "2026-10-25T07:00:00+01:00", "2026-10-25T13:00:00+01:00",
	}}.check(t, time.RFC3339, berlin)
}

// TestC8_CronEnds checks that Next reports false after the last tick.
func TestC8_CronEnds(t *testing.T) {
	last := time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC)
	for _, expr := range []string{"* * * * *", "59 23 * * *", "@every 1m"} {
		s := parse(t, expr)
		if tick, ok := s.Next(last.Add(-time.Second)); !ok || tick != last {
			t.Errorf("%q before the last minute of the year 9999: %v, %t", expr, tick, ok)
		}
		for _, at := range []time.Time{last, last.AddDate(1, 0, 0), last.AddDate(1e6, 0, 0), time.Unix(1<<62, 0)} {
			if tick, ok := s.Next(at); ok || !tick.IsZero() {
				t.Errorf("%q after %v: %v, %t", expr, at, tick, ok)
			}
		}
		if tick, ok := s.Next(time.Time{}); !ok || tick != (time.Time{}).Add(time.Minute) && expr != "59 23 * * *" {
			t.Errorf("%q after the zero time: %v, %t", expr, tick, ok)
		}
	}
	// Five hours west of Greenwich the year is a little longer.
	west := time.FixedZone("west", -5*3600)
	at := time.Date(9999, 12, 31, 23, 58, 0, 0, west)
	if tick, ok := parse(t, "* * * * *").Next(at); !ok || !tick.Equal(at.Add(time.Minute)) {
		t.Errorf("in the last minute of the year 9999 in the west: %v, %t", tick, ok)
	}
	if tick, ok := (cron.Schedule{}).Next(day(2026, 1, 1)); ok || !tick.IsZero() {
		t.Errorf("the zero Schedule: %v, %t", tick, ok)
	}
	// The clock of Berlin has skipped the third hour of the last Sunday of March since
	// 1981. Next searches 400 years.
	berlin := zone(t, "Europe/Berlin")
	if tick, ok := parse(t, "* 2 25-31 3 */7").Next(day(2026, 1, 1).In(berlin)); ok {
		t.Errorf("the hour that is never there: %v", tick)
	}
	if tick, ok := parse(t, "0 2 25-31 3 */7").Next(day(2026, 1, 1).In(berlin)); !ok || tick.Hour() != 3 {
		t.Errorf("the fixed time that is never there: %v, %t", tick, ok)
	}
}

// TestC8_CronTicksArePlain checks that ticks that are computed from different clock
// readings are equal by ==, because a tick is part of a key on which nodes must agree.
func TestC8_CronTicksArePlain(t *testing.T) {
	now := time.Now()
	plain := now.Round(0)
	for _, expr := range []string{"* * * * *", "59 23 * * *", "@every 1h"} {
		s := parse(t, expr)
		got, ok := s.Next(now)
		if want, _ := s.Next(plain); !ok || got != want || got != got.Round(0).Truncate(time.Second) {
			t.Errorf("%q after %v: %v, and %v without its monotonic reading", expr, now, got, want)
		}
	}
}

func TestC8_CronBetween(t *testing.T) {
	s := parse(t, "0 */6 * * *")
	from, to := day(2026, 11, 20), day(2026, 11, 21)
	hours := func(ticks []time.Time) (hours []int) {
		for _, tick := range ticks {
			hours = append(hours, int(tick.Sub(from).Hours()))
		}
		return hours
	}
	tests := []struct {
		name     string
		from, to time.Time
		limit    int
		want     []int
	}{
		{"from is out, to is in", from, to, 100, []int{6, 12, 18, 24}},
		{"just before and after", from.Add(-1), to.Add(-1), 100, []int{0, 6, 12, 18}},
		{"the oldest first", from, to, 2, []int{6, 12}},
		{"exactly as many", from, to, 4, []int{6, 12, 18, 24}},
		{"goes on after the last", from.Add(12 * time.Hour), to, 2, []int{18, 24}},
		{"none missed", from, from.Add(5 * time.Hour), 100, nil},
		{"nothing asked", from, to, 0, nil},
		{"less than nothing", from, to, -1, nil},
		{"backwards", to, from, 100, nil},
		{"the same", from, from, 100, nil},
	}
	for _, test := range tests {
		if got := hours(s.Between(test.from, test.to, test.limit)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	if got := (cron.Schedule{}).Between(from, to, 100); got != nil {
		t.Errorf("the zero Schedule: %v", got)
	}
	end := time.Date(9999, 12, 31, 20, 0, 0, 0, time.UTC)
	if got := parse(t, "0 * * * *").Between(end, end.AddDate(1, 0, 0), 100); len(got) != 3 {
		t.Errorf("at the end of the year 9999: %v", got)
	}
}
