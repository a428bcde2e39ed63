package cron_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
)

// model is a schedule that checks every moment. It shares no code with the package: its
// values are lists, and it uses the time package to read the wall clock.
type model struct {
	expr                                 string
	minutes, hours, days, months, weeks  []int
	dayStar, weekStar, minStar, hourStar bool
}

func (m model) matches(w time.Time) bool {
	day, week := slices.Contains(m.days, w.Day()), slices.Contains(m.weeks, int(w.Weekday()))
	either := day || week
	if m.dayStar || m.weekStar {
		either = day && week
	}
	return either && slices.Contains(m.months, int(w.Month())) &&
		slices.Contains(m.hours, w.Hour()) && slices.Contains(m.minutes, w.Minute())
}

// ticks returns the ticks after from and up to to, by reading the clock of loc at each
// step. It begins two days before from, to know the readings that the clock has shown
// before.
func (m model) ticks(from, to time.Time, step time.Duration) (ticks []time.Time) {
	var top time.Time // the latest reading so far
	for u := from.Truncate(step).Add(-52 * time.Hour); !u.After(to); u = u.Add(step) {
		year, month, day := u.Date()
		hour, minute, second := u.Clock()
		shown := time.Date(year, month, day, hour, minute, second, 0, time.UTC)
		due := false
		if m.minStar || m.hourStar {
			due = second == 0 && m.matches(shown)
		} else if !top.IsZero() {
			for w := top.Truncate(time.Minute).Add(time.Minute); !w.After(shown); w = w.Add(time.Minute) {
				due = due || m.matches(w)
			}
		}
		if due && u.After(from) {
			ticks = append(ticks, u)
		}
		if shown.After(top) {
			top = shown
		}
	}
	return ticks
}

// draw returns a random field: its text, its values, and whether it begins with a star.
// The field ranges from first to last; values are drawn from low to high.
func draw(r *rand.Rand, first, last, low, high int) (text string, values []int, star bool) {
	span := func(from, to, step int) {
		for v := from; v <= to; v += step {
			values = append(values, v)
		}
	}
	value := func() int { return low + r.IntN(high-low+1) }
	switch r.IntN(8) {
	case 0, 1:
		span(first, last, 1)
		return "*", values, true
	case 2:
		step := 1 + r.IntN(last-1)
		span(first, last, step)
		return fmt.Sprintf("*/%d", step), values, true
	case 3:
		from, step := value(), 1+r.IntN(last)
		span(from, last, step)
		return fmt.Sprintf("%d/%d", from, step), values, false
	}
	var items []string
	for range 1 + r.IntN(3) {
		from, to := value(), value()
		if from > to || r.IntN(2) == 0 {
			to = from
		}
		span(from, to, 1)
		items = append(items, fmt.Sprintf("%d-%d", from, to))
		if from == to {
			items[len(items)-1] = strconv.Itoa(from)
		}
	}
	return strings.Join(items, ","), values, false
}

// drawModel returns a random schedule that is likely to tick around a moment.
func drawModel(r *rand.Rand, at time.Time) (m model) {
	texts := [5]string{3: "*"}
	texts[0], m.minutes, m.minStar = draw(r, 0, 59, 0, 59)
	texts[1], m.hours, m.hourStar = draw(r, 0, 23, 0, 5)
	if r.IntN(4) == 0 {
		texts[1], m.hours, m.hourStar = draw(r, 0, 23, 20, 23)
	}
	low, high := 1, 28
	if d := at.Day(); r.IntN(2) == 0 && d > 1 && d < 28 {
		low, high = d-1, d+1
	}
	texts[2], m.days, m.dayStar = draw(r, 1, 31, low, high)
	texts[4], m.weeks, m.weekStar = draw(r, 0, 6, 0, 6)
	if r.IntN(2) == 0 {
		texts[2], m.days, m.dayStar = "*", count(1, 31), true
	}
	if r.IntN(2) == 0 {
		texts[4], m.weeks, m.weekStar = "*", count(0, 6), true
	}
	m.months = count(1, 12)
	if r.IntN(3) == 0 {
		m.months = []int{int(at.Month())}
		texts[3] = strconv.Itoa(m.months[0])
	}
	m.expr = strings.Join(texts[:], " ")
	return m
}

func count(from, to int) (values []int) {
	for v := from; v <= to; v++ {
		values = append(values, v)
	}
	return values
}

var modelZones = []string{
	"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia",
	"Africa/Casablanca", "Asia/Gaza", "America/St_Johns", "Antarctica/Troll", "Antarctica/Casey", "Africa/Monrovia",
	"Africa/Cairo", "Europe/Dublin", "America/Scoresbysund", "Pacific/Kwajalein", "Asia/Pyongyang", "America/Caracas",
	"America/Ciudad_Juarez", "America/Indiana/Winamac", "America/Metlakatla", "America/Juneau", "Asia/Manila",
}

// change draws a moment at which the clock of some zone changes, and the largest step
// that hits the change and every beginning of a minute around it.
func change(t *testing.T, r *rand.Rand) (at time.Time, step time.Duration) {
	t.Helper()
	loc := zone(t, modelZones[r.IntN(len(modelZones))])
	years := [][2]int{{1840, 1970}, {1970, 2038}, {1970, 2038}, {2005, 2030}, {2038, 2100}}[r.IntN(5)]
	at = time.Date(years[0]+r.IntN(years[1]-years[0]), 1, 1+r.IntN(365), 0, 0, 0, 0, loc)
	if _, end := at.ZoneBounds(); !end.IsZero() {
		at = end
	}
	_, before := at.Add(-1).Zone()
	_, after := at.Zone()
	for _, step := range []int{60, 30, 20, 15, 10, 5} {
		if before%step == 0 && after%step == 0 && at.Unix()%int64(step) == 0 {
			return at, time.Duration(step) * time.Second
		}
	}
	return at, time.Second
}

// TestC8_CronModelOfEveryMinute compares schedules with a model that checks every minute
// of real time, around clock changes.
func TestC8_CronModelOfEveryMinute(t *testing.T) {
	const cases = 150
	r := seeded.Rand(t)
	ticks := 0
	for range cases {
		at, step := change(t, r)
		m := drawModel(r, at)
		from := at.Add(-time.Duration(r.Int64N(int64(40 * time.Hour))))
		to := at.Add(40 * time.Hour)
		if step < 10*time.Second {
			from, to = at.Add(-3*time.Hour), at.Add(6*time.Hour)
		}
		want := m.ticks(from, to, step)
		ticks += len(want)
		s := parse(t, m.expr)
		if got := s.Between(from, to, len(want)+10); !slices.EqualFunc(got, want, time.Time.Equal) {
			i := 0
			for i < min(len(got), len(want)) && got[i].Equal(want[i]) {
				i++
			}
			t.Fatalf("%q from %v to %v: from tick %d on\ngot  %v\nwant %v",
				m.expr, from, to, i, got[i:min(i+3, len(got))], want[i:min(i+3, len(want))])
		}
		for range 10 {
			after := from.Add(time.Duration(r.Int64N(int64(to.Sub(from)))))
			i := slices.IndexFunc(want, func(tick time.Time) bool { return tick.After(after) })
			got, ok := s.Next(after)
			if i >= 0 && (!ok || !got.Equal(want[i])) {
				t.Fatalf("%q after %v: %v, %t, want %v", m.expr, after, got, ok, want[i])
			}
			if i < 0 && ok && !got.After(to) {
				t.Fatalf("%q after %v: %v, want none up to %v", m.expr, after, got, to)
			}
		}
	}
	if ticks < cases {
		t.Errorf("%d ticks in %d cases: too few to show anything", ticks, cases)
	}
}
