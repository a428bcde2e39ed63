package cron

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ErrExpr is wrapped by the errors of [Parse], and of the methods of [Schedule] that read
// or write text.
var ErrExpr = errors.New("invalid cron expression")

// exprBytesMax is the maximum length of an expression, in bytes. An expression that lists
// all values in every field has less than half of that.
const exprBytesMax = 1000

const every = "@every"

// wordTable maps each word to the five fields that it stands for.
var wordTable = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

// Parse reads a cron expression: five fields, or a word such as @daily or
// "@every 5m"; the package comment has the whole form. Space around and between
// the fields is ignored.
//
// An expression that can never tick, such as 0 0 30 2 *, is an error too. Every error
// wraps [ErrExpr] and has the name of the wrong field, its content and the valid values.
func Parse(expr string) (Schedule, error) {
	s, err := parse(expr)
	if err != nil {
		return Schedule{}, fmt.Errorf("%w %.100q: %w", ErrExpr, expr, err)
	}
	return s, nil
}

func parse(expr string) (Schedule, error) {
	if len(expr) > exprBytesMax {
		return Schedule{}, fmt.Errorf("it has %d bytes: at most %d are allowed", len(expr), exprBytesMax)
	}
	parts := strings.Fields(strings.ToLower(expr))
	s := Schedule{text: strings.Join(parts, " ")}
	if after, ok := strings.CutPrefix(s.text, every+" "); ok {
		sec, err := parseEvery(after)
		s.everySec = sec
		return s, err
	}
	if strings.HasPrefix(s.text, "@") {
		fields, ok := wordTable[s.text]
		if !ok {
			return Schedule{}, fmt.Errorf("%q is none of %s and %s with a duration",
				s.text, strings.Join(slices.Sorted(maps.Keys(wordTable)), ", "), every)
		}
		parts = strings.Fields(fields)
	}
	c, err := parseCalendar(parts)
	s.calendar = c
	return s, err
}

// parseEvery reads the duration of @every, in seconds.
//
// A fraction of a second is an error, because a task that is stored and claimed for each
// tick cannot keep up with it, and because 0.5s may be a mistake for 0.5m.
func parseEvery(text string) (seconds int64, err error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d%time.Second != 0 {
		return 0, fmt.Errorf("%s: %q is not a duration of whole seconds, such as 90s, 5m or 1h30m", every, text)
	}
	return int64(d / time.Second), nil
}

func parseCalendar(parts []string) (calendar, error) {
	if len(parts) > 0 && (strings.HasPrefix(parts[0], "tz=") || strings.HasPrefix(parts[0], "cron_tz=")) {
		return calendar{}, errors.New("the zone is not part of an expression: " +
			"leave it out, and give the zone beside it: Zone of a queue.Schedule, --zone of stint schedule")
	}
	if len(parts) != len(fieldTable) {
		return calendar{}, fmt.Errorf("it has %d fields, not the %d of %s",
			len(parts), len(fieldTable), fieldNames())
	}
	var sets [len(fieldTable)]set
	for i, part := range parts {
		values, err := fieldTable[i].parse(part)
		if err != nil {
			return calendar{}, fmt.Errorf("%s: %w", fieldTable[i].name, err)
		}
		sets[i] = values
	}
	// Only the first character counts, as in cron: "*,1" begins with a star and
	// "1,*" does not.
	star := func(i int) bool { return parts[i][0] == '*' }
	sunday := sets[4] >> 7 // 7 is day 0 too
	c := calendar{
		minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3], weekdays: sets[4] | sunday,
		bothDays: star(2) || star(4),
		wild:     star(0) || star(1),
	}
	if !c.comes() {
		return calendar{}, fmt.Errorf("day of month: %q never comes in month %q, which has at most %d days",
			parts[2], parts[3], c.longestMonth())
	}
	return c, nil
}
