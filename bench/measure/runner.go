package measure

import (
	"fmt"
	"time"
)

// Runner runs cases. The zero value is not useful: see [Full] and [Once].
type Runner struct {
	// Rounds is how often each subject has its turn.
	Rounds int
	// Target is how long one sample of a loop should take.
	Target time.Duration
	// Distances has the distance of the cores measured around each sample of a loop.
	Distances bool
	// Once makes everything tiny: for correctness, not for figures.
	Once bool
}

// Full measures for figures. With fewer than 5 rounds, medians are random.
func Full(rounds int) Runner {
	return Runner{Rounds: rounds, Target: 250 * time.Millisecond, Distances: true}
}

// Once does one tiny pass.
func Once() Runner { return Runner{Rounds: 1, Once: true} }

// onceN is how many operations a loop does in a tiny pass, and in the pass
// that counts, unless its case has fewer.
const onceN = 500

func tiny(c Case) int {
	if c.N > 0 {
		return min(c.N, onceN)
	}
	return onceN
}

// Run checks that every subject does the work, finds out how many operations
// each needs, and then lets them take turns. It blocks until the case is done.
func (r Runner) Run(c Case) (Result, error) {
	if err := r.verify(c); err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	sizes, err := r.sizes(c)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	result := Result{Case: c, Samples: make([][]Values, len(c.Subjects))}
	if r.Distances && len(c.Readings) == 0 {
		result.Distances = make([][]Distance, len(c.Subjects))
	}
	for round := range r.Rounds {
		if err := r.round(&result, round, sizes); err != nil {
			return Result{}, fmt.Errorf("%s: round %d: %w", c.Name, round+1, err)
		}
	}
	return result, nil
}

// round gives each subject its turn, starting one later than the round before, so
// that it is not always the same subject that follows a heavy one.
func (r Runner) round(result *Result, round int, sizes []int) error {
	subjects, before := result.Case.Subjects, 0.0
	if result.Distances != nil {
		before = Trip()
	}
	for turn := range subjects {
		i := (round + turn) % len(subjects)
		values, err := subjects[i].sample(&Stage{N: sizes[i], Once: r.Once})
		if err != nil {
			return err
		}
		result.Samples[i] = append(result.Samples[i], values)
		if result.Distances != nil {
			after := Trip()
			result.Distances[i] = append(result.Distances[i], Distance{before, after})
			before = after
		}
	}
	return nil
}

// verify runs every loop with counted tasks.
func (r Runner) verify(c Case) error {
	for _, s := range c.Subjects {
		if s.Loop == nil {
			continue
		}
		if _, err := s.sample(&Stage{N: tiny(c), Counting: true, Once: true}); err != nil {
			return err
		}
	}
	return nil
}

// sizes says how many operations each subject does in one sample.
func (r Runner) sizes(c Case) ([]int, error) {
	sizes := make([]int, len(c.Subjects))
	for i, s := range c.Subjects {
		switch {
		case s.Loop == nil:
		case r.Once:
			sizes[i] = tiny(c)
		case c.N > 0:
			sizes[i] = c.N
		default:
			n, err := r.calibrate(s)
			if err != nil {
				return nil, err
			}
			sizes[i] = n
		}
	}
	return sizes, nil
}

// calibrate makes samples longer until one takes a tenth of the target, and
// scales from there: shorter ones say too little about the pace.
func (r Runner) calibrate(s Subject) (int, error) {
	for n := onceN; ; n *= 4 {
		values, err := s.sample(&Stage{N: n})
		if err != nil {
			return 0, err
		}
		took := time.Duration(values[Time] * float64(n))
		if took >= r.Target/10 {
			return max(1, int(float64(n)*float64(r.Target)/float64(took))), nil
		}
	}
}
