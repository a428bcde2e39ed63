// Package measure does the same work with several subjects, side by side, and
// says how their figures compare.
//
// Machines are noisy, and a virtual one is noisy for minutes at a time: two
// virtual cores drift between sharing a cache and not sharing one, and what
// both touch then costs three times as much. So the subjects of a case take
// turns in one process, the order turning from round to round, and only
// figures of the same round are divided by each other. A ratio is the median
// of those quotients, not the quotient of two medians.
package measure

import (
	"fmt"
	"slices"
)

// The readings that every loop gives. A probe names its own.
const (
	Time   = "time"   // nanoseconds for each operation
	Allocs = "allocs" // heap allocations for each operation
	Bytes  = "bytes"  // heap bytes allocated for each operation
)

// Case is one piece of work that several subjects do.
type Case struct {
	// Name says what the work is, in the words of the results' table.
	Name string
	// N is how many operations one sample does; 0 takes as many as fill the
	// runner's target time.
	N int
	// Readings are what the probes measure, the main one first. A case of loops
	// leaves it empty.
	Readings []Reading
	// Ours names the subject that the goals are about.
	Ours string
	// Goals are in the language of [ParseGoal]. This is where they are stated;
	// tables and documents are made from them.
	Goals []string
	// Subjects take turns in this order, and the next round starts one later.
	Subjects []Subject
}

// Reading is one thing that is measured, with its unit ("ns", "/s", "%"…).
type Reading struct {
	Name string
	Unit string
}

// Values maps the names of readings to figures.
type Values map[string]float64

// Loop does its operation n times and returns how many it saw done. When its
// stage does not count (see [Stage.Counting]) it may return n.
type Loop func(n int) int

// Subject is one way to do the work of a case. Exactly one of Loop and Probe
// is set. Both are called anew for each sample, so no subject measures in the
// heap that another has left behind.
type Subject struct {
	Name string
	// Loop prepares the work; what it does itself is not timed.
	Loop func(*Stage) Loop
	// Probe measures by itself, for work that is not a time for each operation.
	Probe func(*Stage) (Values, error)
}

// MainReading is the reading that the table of results leads with.
func (c Case) MainReading() Reading { return c.AllReadings()[0] }

// AllReadings are all that a sample of this case holds.
func (c Case) AllReadings() []Reading {
	if len(c.Readings) > 0 {
		return c.Readings
	}
	return []Reading{{Time, "ns"}, {Allocs, "allocs"}, {Bytes, "B"}}
}

// Unit is the unit of a reading.
func (c Case) Unit(reading string) string {
	i := slices.IndexFunc(c.AllReadings(), func(r Reading) bool { return r.Name == reading })
	return c.AllReadings()[i].Unit
}

// ParsedGoals reads the goals and checks that each is about a reading and a
// subject that the case has.
func (c Case) ParsedGoals() ([]Goal, error) {
	goals := make([]Goal, 0, len(c.Goals))
	for _, text := range c.Goals {
		g, err := ParseGoal(text)
		if err == nil {
			err = c.knows(g)
		}
		if err != nil {
			return nil, fmt.Errorf("case %q: %w", c.Name, err)
		}
		goals = append(goals, g)
	}
	return goals, nil
}

func (c Case) knows(g Goal) error {
	if !slices.ContainsFunc(c.AllReadings(), func(r Reading) bool { return r.Name == g.Reading }) {
		return fmt.Errorf("goal %q: no reading %q", g, g.Reading)
	}
	for _, name := range []string{c.Ours, g.Against} {
		if name != "" && !slices.ContainsFunc(c.Subjects, func(s Subject) bool { return s.Name == name }) {
			return fmt.Errorf("goal %q: no subject %q", g, name)
		}
	}
	return nil
}
