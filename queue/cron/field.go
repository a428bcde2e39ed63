package cron

import (
	"fmt"
	"strconv"
	"strings"
)

// field describes one of the five parts of an expression and its valid values.
type field struct {
	name        string
	first, last int // the values that * stands for
	// top is the largest valid number. It differs from last only in the day of week,
	// where 7 means 0, so that a range can end with Sunday.
	top   int
	names []string // of the values from first; nil if there are none
}

var fieldTable = [...]field{
	{name: "minute", first: 0, last: 59, top: 59},
	{name: "hour", first: 0, last: 23, top: 23},
	{name: "day of month", first: 1, last: 31, top: 31},
	{
		name: "month", first: 1, last: 12, top: 12,
		names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
	},
	{
		name: "day of week", first: 0, last: 6, top: 7,
		names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"},
	},
}

// fieldNames returns the names of all fields in their order, for messages.
func fieldNames() string {
	var names [len(fieldTable)]string
	for i, f := range fieldTable {
		names[i] = f.name
	}
	return strings.Join(names[:], ", ")
}

// parse reads a list of items, in lower case.
func (f field) parse(text string) (values set, err error) {
	for item := range strings.SplitSeq(text, ",") {
		first, last, step, err := f.item(item)
		if err != nil {
			return 0, err
		}
		for v := first; v <= last; v += step {
			values |= 1 << v
		}
	}
	return values, nil
}

// item reads a value, a range or *, with or without a step.
func (f field) item(text string) (first, last, step int, err error) {
	values, stepText, stepped := strings.Cut(text, "/")
	if first, last, err = f.span(values); err != nil {
		return 0, 0, 0, err
	}
	if !stepped {
		return first, last, 1, nil
	}
	// A step larger than the field selects only its first value. That is never the
	// intention of "*/90", so it is an error, as in cron.
	step, ok := number(stepText)
	if !ok || step < 1 || step > f.top {
		return 0, 0, 0, fmt.Errorf("the step %q of %q is not a number from 1 to %d", stepText, text, f.top)
	}
	if !strings.ContainsAny(values, "*-") {
		last = max(first, f.last)
	}
	return first, last, step, nil
}

// span reads the part of an item before the step.
func (f field) span(text string) (first, last int, err error) {
	if text == "*" {
		return f.first, f.last, nil
	}
	firstText, lastText, ranged := strings.Cut(text, "-")
	if first, err = f.value(firstText); err != nil || !ranged {
		return first, first, err
	}
	if last, err = f.value(lastText); err != nil {
		return 0, 0, err
	}
	if first > last && last == f.first && f.top > f.last {
		last = f.top // fri-sun ends with the Sunday after it
	}
	if first > last {
		return 0, 0, fmt.Errorf("the range %q runs backwards: write %s-%d,%d-%s",
			text, firstText, max(first, f.last), f.first, lastText)
	}
	return first, last, nil
}

func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if text == name {
			return f.first + i, nil
		}
	}
	if v, ok := number(text); ok && v >= f.first && v <= f.top {
		return v, nil
	}
	return 0, fmt.Errorf("%q is not %s", text, f.allowed())
}

// allowed describes the valid values, for messages.
func (f field) allowed() string {
	if f.names == nil {
		return fmt.Sprintf("a number from %d to %d", f.first, f.top)
	}
	return fmt.Sprintf("a number from %d to %d or a name from %s to %s",
		f.first, f.top, f.names[0], f.names[len(f.names)-1])
}

// number reads digits only; strconv would also accept a sign.
func number(text string) (int, bool) {
	if strings.ContainsAny(text, "+-") {
		return 0, false
	}
	v, err := strconv.Atoi(text)
	return v, err == nil
}
