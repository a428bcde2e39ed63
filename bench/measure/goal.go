package measure

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Goal is a bound of a reading of our subject: at most or at least a
// bound, or a multiple of another subject's reading in the same rounds.
type Goal struct {
	Reading string
	AtMost  bool
	Bound   float64 // nanoseconds where the goal was written with a unit of time
	Against string  // the other subject, or empty for a bound by itself

	text string // the goal without its reading, as it was written
}

// unitTable has the units of bounds. Times become nanoseconds, because
// that is what loops answer, and sizes bytes; the other units are for the reader.
var unitTable = map[string]float64{
	"": 1, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9, "B": 1, "MiB": 1 << 20, "GiB": 1 << 30, "%": 1, "/s": 1,
}

// ParseGoal reads a goal, which looks like one of
//
//	time ≤ 0.75× x/sync
//	rate ≥ 10× p-limit
//	time ≤ 5 ms
//	allocs ≤ 0
//
// that is: a reading, ≤ or ≥, a number, and either × and the name of a subject
// or a unit (ns, µs, ms, s, B, MiB, GiB, %, /s), or nothing.
func ParseGoal(text string) (Goal, error) {
	text = strings.TrimSpace(text)
	reading, condition, atMost, ok := cutRelation(text)
	if !ok || reading == "" || strings.ContainsAny(reading+condition, "≤≥") {
		return Goal{}, fmt.Errorf("goal %q: want a reading, then one ≤ or ≥", text)
	}
	g := Goal{Reading: reading, AtMost: atMost, text: strings.TrimSpace(text[len(reading):])}
	number, against, isRatio := strings.Cut(condition, "×")
	if isRatio {
		g.Against = strings.TrimSpace(against)
		if g.Against == "" {
			return Goal{}, fmt.Errorf("goal %q: want a subject's name after ×", text)
		}
	}
	scale := 1.0
	if !isRatio {
		number, scale = cutUnit(number)
	}
	bound, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || math.IsNaN(bound) || math.IsInf(bound, 0) {
		return Goal{}, fmt.Errorf("goal %q: want a number after ≤ or ≥, then × and a subject or a unit", text)
	}
	g.Bound = bound * scale
	return g, nil
}

func cutRelation(text string) (reading, condition string, atMost, ok bool) {
	if before, after, found := strings.Cut(text, "≤"); found {
		return strings.TrimSpace(before), after, true, true
	}
	before, after, found := strings.Cut(text, "≥")
	return strings.TrimSpace(before), after, false, found
}

// cutUnit takes a unit off the end of a number. The longest one that fits is
// meant: 5 ms ends in s, too.
func cutUnit(number string) (rest string, scale float64) {
	number = strings.TrimSpace(number)
	longest := ""
	for unit := range unitTable {
		if strings.HasSuffix(number, unit) && len(unit) > len(longest) {
			longest = unit
		}
	}
	return strings.TrimSuffix(number, longest), unitTable[longest]
}

// MetBy reports whether a value meets the goal. Allocations are counted for
// the whole process and divided by the operations, so a goroutine that the
// runtime starts meanwhile, or the queue around a million entries, shows up as
// a small fraction. They are rounded to a tenth, and bytes to whole ones.
func (g Goal) MetBy(value float64) bool {
	switch {
	case g.Against != "":
	case g.Reading == Allocs:
		value = math.Round(value*10) / 10
	case g.Reading == Bytes:
		value = math.Round(value)
	}
	if g.AtMost {
		return value <= g.Bound
	}
	return value >= g.Bound
}

// Condition is the goal without its reading and without the other subject's
// name: "≤ 0.75×".
func (g Goal) Condition() string {
	return strings.TrimSpace(strings.TrimSuffix(g.text, g.Against))
}

// String is the whole goal.
func (g Goal) String() string { return g.Reading + " " + g.text }
