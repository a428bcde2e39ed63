package backlog

// Every guardEvery-th turn is a turn of the guard.
const guardEvery = 8

// Cycle is the length in turns of the guard's fixed sequence.
const Cycle = guardEvery * Tiers

// guard is the starvation guard: the position in its fixed sequence of turns, 0 … Cycle-1.
type guard int

// tier returns the tier that owns the present turn.
func (g guard) tier() (tier int, ok bool) {
	if g%guardEvery != guardEvery-1 {
		return 0, false
	}
	return int(g / guardEvery), true
}

// in is the number of turns until the next one of a tier; 0 is the present one.
func (g guard) in(tier int) int {
	return (guardEvery*tier + guardEvery - 1 - int(g) + Cycle) % Cycle
}

// end ends the present turn.
func (g *guard) end() {
	*g++
	if *g == Cycle {
		*g = 0
	}
}

// pass ends n turns.
func (g *guard) pass(n uint64) { *g = guard((uint64(*g) + n) % Cycle) }
