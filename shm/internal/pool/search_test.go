package pool //nolint:testpackage // the search stops the code before each access to a shared word

import (
	"fmt"
	"hash/maphash"
	"os"
	"strings"
	"testing"
)

// scenario is what each process does, and which faults may happen. The search runs it in
// all orders.
type scenario struct {
	name   string
	shape  Shape
	actors []func(*actor)

	faults   int  // number of processes that are killed or stopped, at any instant
	timeouts int  // number of times that a sleeper wakes because a period is over
	switches int  // number of times that another actor runs though the last one could; -1: unlimited
	sees     bool // the host reports stopped processes
}

// never is for scenarios that have no timeouts, in a larger search either.
const never = -1

// act is a kind of next step.
type act uint8

const (
	goOn    act = iota // the actor makes its next access
	expire             // the actor sleeps, and its period is over
	kill               // the actor's process dies
	suspend            // the actor's process is stopped until the end
)

func (a act) String() string {
	return [...]string{"goes on", "times out", "is killed", "is stopped"}[a]
}

type choice struct {
	act   act
	actor int
}

// search runs a scenario in every order. It abandons an order that reaches a state
// that another order has reached.
type search struct {
	scenario *scenario
	seed     maphash.Seed
	seen     map[uint64]int // depth in the path, from 1; 0: no longer on the path
	path     []branch
	runs     int
}

// branch is a point of the path that has several choices.
type branch struct {
	key     uint64 // of the state
	choices []choice
	taken   int
}

// explore runs the scenario in every order, and returns the first failure.
func explore(p *scenario) (s *search, wrong string) {
	s = &search{scenario: p, seed: maphash.MakeSeed(), seen: map[uint64]int{}}
	for {
		s.runs++
		w := newWorld(p, s.seed)
		s.run(w)
		w.end()
		if w.wrong != "" {
			return s, w.wrong
		}
		if !s.next() {
			return s, ""
		}
	}
}

// run follows the path, and then continues to the end.
func (s *search) run(w *world) {
	for depth := 0; w.wrong == ""; depth++ {
		if depth == len(s.path) {
			choices := w.choices()
			if len(choices) == 0 {
				w.finish()
				return
			}
			key := w.key()
			if at, known := s.seen[key]; known {
				if at > 0 && s.circles(at-1) {
					w.fail(fmt.Sprintf("%d goes round in circles", w.last.id))
				}
				return
			}
			s.path = append(s.path, branch{key: key, choices: choices})
			s.seen[key] = len(s.path)
		}
		b := s.path[depth]
		w.do(b.choices[b.taken])
		if depth > stepsMax {
			w.fail("it never ends")
		}
	}
}

const stepsMax = 3000

// next advances the latest branch that has another choice.
func (s *search) next() bool {
	for len(s.path) > 0 {
		b := &s.path[len(s.path)-1]
		if b.taken++; b.taken < len(b.choices) {
			return true
		}
		s.seen[b.key] = 0
		s.path = s.path[:len(s.path)-1]
	}
	return false
}

// circles reports whether only one actor could run since the given depth of the path,
// whose state has come again: the actor will repeat itself for ever.
func (s *search) circles(since int) bool {
	for _, b := range s.path[since:] {
		if len(b.choices) > 1 && b.choices[1].act == goOn {
			return false
		}
	}
	return true
}

// story describes the order that failed.
func (s *search) story(w *world) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, in run %d:\n", w.wrong, s.runs)
	for _, line := range w.log {
		fmt.Fprintln(&b, line)
	}
	for n := range w.pool.limits {
		l := &w.pool.limits[n]
		fmt.Fprintf(&b, "limit %d: mask %b, slots", n, *l.mask)
		for i := range l.count {
			fmt.Fprintf(&b, " %x", *l.slot(i))
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// again runs the path once more, with a log of all steps.
func (s *search) again(wrong string) string {
	w := newWorld(s.scenario, s.seed)
	w.logs = true
	defer w.end()
	for _, b := range s.path {
		w.do(b.choices[b.taken])
	}
	if w.wrong == "" {
		w.finish()
	}
	w.wrong = wrong
	return s.story(w)
}

// runAll fails the test if a scenario can fail. With STINT_SEEDS it runs larger ones,
// which take minutes instead of seconds.
func runAll(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, p := range scenarios {
		if p.switches > 0 {
			p.switches -= fewerSwitches
		}
		if os.Getenv("STINT_SEEDS") != "" {
			p.timeouts++
			if p.switches != anyOrder {
				p.switches++
			}
		}
		t.Run(p.name, func(t *testing.T) {
			s, wrong := explore(&p)
			if wrong != "" {
				t.Fatal(s.again(wrong))
			}
			t.Logf("%d states, %d runs", len(s.seen), s.runs)
		})
	}
}
