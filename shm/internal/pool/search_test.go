package pool //nolint:testpackage // the search stops the code before each access to a shared word

import (
	"fmt"
	"hash/maphash"
	"os"
	"strings"
	"testing"
)

// plot is a story that is told in all orders: what each process does, and what
// may happen to them.
type plot struct {
	name   string
	shape  Shape
	actors []func(*actor)

	faults   int  // how many processes are killed or stopped, at any instant
	timeouts int  // how often a sleeper wakes because a period is over
	switches int  // how often another actor goes on though this one could; -1: always
	sees     bool // whether a process is stopped can be seen
}

// never is for plots that are not to have timeouts in a larger search either.
const never = -1

// act is what happens next.
type act uint8

const (
	goOn    act = iota // the actor makes its next access
	expire             // it sleeps, and its period is over
	kill               // its process dies
	suspend            // its process is stopped, and will go on at the end
)

func (a act) String() string {
	return [...]string{"goes on", "times out", "is killed", "is stopped"}[a]
}

type choice struct {
	act act
	who int
}

// search tells the plot in every order. An order is left where it comes to a
// state that another has been in.
type search struct {
	plot *plot
	seed maphash.Seed
	seen map[uint64]int // how deep in the path, from 1; 0: it is left
	path []branch
	runs int
}

// branch is a point of the path at which there were several choices.
type branch struct {
	key     uint64 // of the state
	choices []choice
	taken   int
}

// explore tells the plot in every order, and returns what goes wrong in the first
// that does.
func explore(p *plot) (s *search, wrong string) {
	s = &search{plot: p, seed: maphash.MakeSeed(), seen: map[uint64]int{}}
	for {
		s.runs++
		w := newWorld(p, s.seed)
		s.tell(w)
		w.end()
		if w.wrong != "" {
			return s, w.wrong
		}
		if !s.next() {
			return s, ""
		}
	}
}

// tell goes along the path, and then on to the end.
func (s *search) tell(w *world) {
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

// next turns to the latest branch that has another choice.
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

// circles reports whether since a state of the path, which has come again, one
// actor alone could go on: it will do so for ever.
func (s *search) circles(since int) bool {
	for _, b := range s.path[since:] {
		if len(b.choices) > 1 && b.choices[1].act == goOn {
			return false
		}
	}
	return true
}

// story is the order that went wrong, for people.
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

// again tells the path once more, with all that happens written down.
func (s *search) again(wrong string) string {
	w := newWorld(s.plot, s.seed)
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

// tellAll fails the test if a plot can go wrong. STINT_SEEDS asks for larger ones:
// minutes instead of seconds.
func tellAll(t *testing.T, plots []plot) {
	t.Helper()
	for _, p := range plots {
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
