package shm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/stintgo/stint/shm/internal/pool"
)

// Geometry is what a region contains. All processes must open it with the same geometry.
type Geometry struct {
	Slots   []int  `json:"slots"` // number of slots of each limit, from 1 to SlotsMax
	Mutexes int    `json:"mutexes"`
	Rates   []Rate `json:"rates,omitempty"` // one per bucket
}

// String returns the geometry as messages show it, as in
// "slots [4 16], 1 mutex, rates [20/s capacity 5]".
func (g Geometry) String() string {
	var parts []string
	if len(g.Slots) > 0 {
		parts = append(parts, fmt.Sprintf("slots %d", g.Slots))
	}
	switch g.Mutexes {
	case 0:
	case 1:
		parts = append(parts, "1 mutex")
	default:
		parts = append(parts, fmt.Sprintf("%d mutexes", g.Mutexes))
	}
	if len(g.Rates) > 0 {
		rates := make([]string, len(g.Rates))
		for i, rate := range g.Rates {
			rates[i] = fmt.Sprintf("%g/s capacity %d", rate.PerSecond, rate.capacity())
		}
		parts = append(parts, "rates ["+strings.Join(rates, ", ")+"]")
	}
	return strings.Join(parts, ", ")
}

func (g Geometry) validate() error {
	var problems []error
	few := g.Mutexes >= 0 && g.Mutexes <= limitsMax // else the sum may overflow
	if !few {
		problems = append(problems, fmt.Errorf("geometry.Mutexes is %d, want 0 to %d", g.Mutexes, limitsMax))
	}
	if n := len(g.Slots) + g.Mutexes + len(g.Rates); few && (n == 0 || n > limitsMax) {
		problems = append(problems, fmt.Errorf("%d limits, mutexes and rates, want 1 to %d", n, limitsMax))
	}
	for i, n := range g.Slots {
		if n < 1 || n > SlotsMax {
			problems = append(problems, fmt.Errorf("geometry.Slots[%d] is %d, want 1 to %d", i, n, SlotsMax))
		}
	}
	for i, rate := range g.Rates {
		if err := rate.validate(); err != nil {
			problems = append(problems, fmt.Errorf("geometry.Rates[%d]: %w", i, err))
		}
	}
	return errors.Join(problems...)
}

// geometryOf decodes a geometry from the form that numbers returns.
func geometryOf(all []uint64) (g Geometry, err error) {
	g.Slots = []int{} // in JSON a list, also if it is empty
	if len(all) < 2 || all[0] > limitsMax || all[1] > limitsMax || 2+2*int(all[1]) > len(all) {
		return g, fmt.Errorf("%w: its geometry is %d", ErrMismatch, all)
	}
	rates, slots := all[2:][:2*all[1]], all[2+2*all[1]:]
	g.Mutexes, g.Rates = int(all[0]), ratesOf(rates)
	for _, n := range slots {
		g.Slots = append(g.Slots, int(min(n, SlotsMax+1)))
	}
	if err := g.validate(); err != nil {
		return g, fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	return g, nil
}

// shape returns the shape of the pool: a mutex is a limit of one slot.
func (g Geometry) shape() pool.Shape {
	limits := slices.Concat(g.Slots, slices.Repeat([]int{1}, g.Mutexes))
	return pool.Shape{Participants: ProcessesMax, Limits: limits, Buckets: len(g.Rates)}
}

// numbers encodes the geometry as it is stored in the region.
func (g Geometry) numbers() []uint64 {
	all := []uint64{uint64(g.Mutexes), uint64(len(g.Rates))}
	for _, rate := range g.Rates {
		all = append(all, math.Float64bits(rate.PerSecond), uint64(rate.capacity()))
	}
	for _, n := range g.Slots {
		all = append(all, uint64(n))
	}
	return all
}
