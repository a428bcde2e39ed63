package measure

import (
	"math"
	"slices"
)

// Result is the result of a case: for each subject, in the case's order, one
// set of values for each round.
type Result struct {
	Case    Case
	Samples [][]Values
	// Distances of the cores, one for each sample; empty if the runner does not measure them.
	Distances [][]Distance
}

// Median is the middle of a subject's figures over the rounds.
func (r Result) Median(subject, reading string) float64 {
	return Median(r.series(subject, reading))
}

// Ratio divides two subjects' figures round by round and returns the middle of
// the quotients. It is not finite where the divisor was 0.
func (r Result) Ratio(subject, against, reading string) float64 {
	return MedianRatio(r.series(subject, reading), r.series(against, reading))
}

// Compare compares the result with a goal: the value that the goal is about (a
// ratio if it names another subject), and whether the goal is met.
func (r Result) Compare(g Goal) (value float64, met bool) {
	if g.Against != "" {
		value = r.Ratio(r.Case.Ours, g.Against, g.Reading)
	} else {
		value = r.Median(r.Case.Ours, g.Reading)
	}
	return value, g.MetBy(value)
}

func (r Result) series(subject, reading string) []float64 {
	i := r.index(subject)
	series := make([]float64, 0, len(r.Samples[i]))
	for _, values := range r.Samples[i] {
		series = append(series, values[reading])
	}
	return series
}

func (r Result) index(subject string) int {
	return slices.IndexFunc(r.Case.Subjects, func(s Subject) bool { return s.Name == subject })
}

// Median is the middle of values, or the mean of the two in the middle. Of no
// values it is not a number.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// MedianRatio is the median of a[i]/b[i]. Both must be of one length.
func MedianRatio(a, b []float64) float64 {
	quotients := make([]float64, len(a))
	for i := range a {
		quotients[i] = a[i] / b[i]
	}
	return Median(quotients)
}
