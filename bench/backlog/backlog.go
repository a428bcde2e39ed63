// Package backlog measures the queue behind the scheduler, without locks and
// goroutines, against the priority queues that programs use instead.
//
// controller-runtime's priority queue is not among them: it brings 500
// packages and compiles for longer than everything here runs, and it was four
// to ten times slower than container/heap when it was tried by itself.
package backlog

import (
	"fmt"
	"math/rand/v2"
	"runtime"

	policy "github.com/stintgo/stint/internal/backlog"

	"github.com/stintgo/stint/bench/measure"
)

// The names of the subjects, as tables and goals write them.
const (
	ours    = "stint"
	stdHeap = "container/heap"
	workiva = "Workiva PriorityQueue"
)

const (
	small = 10_000
	large = 1_000_000
	huge  = 10_000_000
)

// operations of one sample. Filling a queue takes longer than the operations, so
// the number is given, not calibrated.
const operations = 1_000_000

// Cases are the rows of this suite.
func Cases() []measure.Case {
	return []measure.Case{
		turnover(small, 0.15), turnover(large, 0.25), flat(),
		cancelAnywhere(),
		footprint(),
	}
}

// filled is a priority queue of seven tiers.
type filled interface {
	// next takes the first entry out and queues it again, behind its tier. So
	// the tiers keep their lengths; entries of random tiers would soon leave
	// nothing but the lowest, and a heap that is never rearranged.
	next() bool
	// forget drops the list of entries that only cancelling needs, and that a
	// caller has in hands of its own.
	forget()
}

// removable is a queue that entries can be taken out of anywhere.
type removable interface {
	filled
	// cancel removes the i-th entry, at any position, and queues it again.
	cancel(i int) bool
}

func turnover(size int, ratio float64) measure.Case {
	return measure.Case{
		Name: fmt.Sprintf("push + pop with 7 tiers, %d queued", size),
		N:    operations,
		Ours: ours,
		Goals: []string{
			fmt.Sprintf("time ≤ %v× %s", ratio, stdHeap),
			"allocs ≤ 0",
		},
		Subjects: []measure.Subject{
			{Name: ours, Loop: turn(size, newPolicy)},
			{Name: stdHeap, Loop: turn(size, newHeap)},
			{Name: workiva, Loop: turn(size, newWorkiva)},
		},
	}
}

// flat compares our queue with itself. Beyond a million entries none is in a
// cache any more, so a growth from there on would be due to the algorithm.
func flat() measure.Case {
	atHuge, atLarge := sized(huge), sized(large)
	return measure.Case{
		Name:  "push + pop, the same from 1,000,000 to 10,000,000 queued",
		N:     operations,
		Ours:  atHuge,
		Goals: []string{"time ≤ 1.5× " + atLarge},
		Subjects: []measure.Subject{
			{Name: atHuge, Loop: turn(huge, newPolicy)},
			{Name: atLarge, Loop: turn(large, newPolicy)},
			{Name: sized(small), Loop: turn(small, newPolicy)},
		},
	}
}

// cancelAnywhere shows that cancelling is O(1): ten times the entries, the same work.
func cancelAnywhere() measure.Case {
	atHuge, atLarge := sized(huge), sized(large)
	return measure.Case{
		Name:  "cancel anywhere + push, the same from 1,000,000 to 10,000,000 queued",
		N:     operations,
		Ours:  atHuge,
		Goals: []string{"time ≤ 1.5× " + atLarge},
		Subjects: []measure.Subject{
			{Name: atHuge, Loop: cancelling(huge, newPolicy)},
			{Name: atLarge, Loop: cancelling(large, newPolicy)},
			{Name: sized(small), Loop: cancelling(small, newPolicy)},
			{Name: stdHeap + ", 1000000 queued", Loop: cancelling(large, newHeap)},
			{Name: stdHeap + ", 10000 queued", Loop: cancelling(small, newHeap)},
		},
	}
}

func sized(n int) string { return fmt.Sprintf("stint, %d queued", n) }

func footprint() measure.Case {
	return measure.Case{
		Name:     "memory of an entry, 1,000,000 queued",
		Ours:     ours,
		Readings: []measure.Reading{{Name: measure.Bytes, Unit: "B"}},
		Goals:    []string{"bytes ≤ 64 B"},
		Subjects: []measure.Subject{
			{Name: ours, Probe: weigh(newPolicy)},
			{Name: stdHeap, Probe: weigh(newHeap)},
			{Name: workiva, Probe: weigh(newWorkiva)},
		},
	}
}

func turn[Q filled](size int, fill func([]int) Q) func(*measure.Stage) measure.Loop {
	return func(st *measure.Stage) measure.Loop {
		q := fill(tiersOf(st.Size(size)))
		return func(n int) int {
			done := 0
			for range n {
				if q.next() {
					done++
				}
			}
			return done
		}
	}
}

// cancelling picks entries by a fixed random sequence, which every subject
// pays for alike. It makes the entries lie anywhere in memory.
func cancelling[Q removable](size int, fill func([]int) Q) func(*measure.Stage) measure.Loop {
	return func(st *measure.Stage) measure.Loop {
		entries := st.Size(size)
		q := fill(tiersOf(entries))
		random := rand.New(rand.NewPCG(1, 2))
		return func(n int) int {
			done := 0
			for range n {
				if q.cancel(random.IntN(entries)) {
					done++
				}
			}
			return done
		}
	}
}

// weigh looks at the heap before and after, so slices that have grown too long
// count as well.
func weigh[Q filled](fill func([]int) Q) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		tiers := tiersOf(st.Size(large))
		before := live()
		q := fill(tiers)
		q.forget()
		after := live()
		if !q.next() {
			return nil, fmt.Errorf("the queue is empty")
		}
		runtime.KeepAlive(tiers)
		return measure.Values{measure.Bytes: float64(after-before) / float64(len(tiers))}, nil
	}
}

func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// tiersOf returns the same random tiers for every subject.
func tiersOf(n int) []int {
	random := rand.New(rand.NewPCG(3, 4))
	tiers := make([]int, n)
	for i := range tiers {
		tiers[i] = random.IntN(policy.Tiers)
	}
	return tiers
}
