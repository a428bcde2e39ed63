// Package jobcount parses the value of -j: how many jobs may run at once.
package jobcount

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Machine has the values that the number can depend on.
type Machine struct {
	CPUs int // available to this process
	Most int // how many jobs the system allows; the meaning of 0
}

// Parse parses a number of jobs: 8; 0 for as many as the system allows; 50% of the
// processors, rounded down; +2 or -1 for that many more or fewer than the processors. The
// result is from 1 to m.Most.
func Parse(text string, m Machine) (int, error) {
	n, err := parse(text, m)
	if err != nil {
		return 0, err
	}
	return int(min(max(n, 1), int64(m.Most))), nil
}

// Fits reports whether the system allows the number of jobs that a text asks for. 0
// always fits.
func Fits(text string, m Machine) bool {
	n, err := parse(text, m)
	return err != nil || n == allOfThem || n <= int64(m.Most)
}

// allOfThem stands for as many jobs as the system allows.
const allOfThem = math.MaxInt64

// parse returns the number that a text asks for, or allOfThem.
func parse(text string, m Machine) (int64, error) {
	word := strings.TrimSpace(text)
	digits, percent := strings.CutSuffix(word, "%")
	relative := strings.HasPrefix(word, "+") || strings.HasPrefix(word, "-")
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || percent && (relative || n == 0) {
		return 0, fmt.Errorf("number of jobs %q: give a number, 0 for as many as the system allows, "+
			"50%% of the processors, or +2 or -1 relative to them", text)
	}
	switch {
	case percent:
		n = n * int64(m.CPUs) / 100
	case relative:
		n += int64(m.CPUs)
	case n == 0:
		n = allOfThem
	}
	return n, nil
}
