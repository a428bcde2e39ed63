package stint

import "weak"

// Collected returns a function that reports whether the garbage collector has taken
// what the copies of l share.
func (l Limiter) Collected() func() bool {
	p := weak.Make(l.c)
	return func() bool { return p.Value() == nil }
}
