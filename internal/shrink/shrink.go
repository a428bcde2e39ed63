// Package shrink removes from maps and slices so that their memory follows what
// is in them. The runtime never shrinks a map, and a slice keeps its array
// however short it gets, so that what was once full of a million entries would
// keep their memory for as long as it is used itself.
//
// Both are copied when three quarters of what they once held are gone. So a
// removal costs O(1), amortized; the copy is made in one go.
package shrink

import "maps"

// Below this number of entries nothing is copied: it would save too little.
const smallest = 256

// Delete deletes key from *m. peak is the largest length that *m has had since
// it was made, as far as Delete has seen; it begins with 0. When *m has fallen to a
// quarter of that, it is replaced by a copy. A range over *m at that time goes on
// over the map that was replaced, which does not change any more.
func Delete[K comparable, V any](m *map[K]V, peak *int, key K) {
	*peak = max(*peak, len(*m))
	delete(*m, key)
	if *peak < smallest || len(*m) > *peak/4 {
		return
	}
	fresh := make(map[K]V, len(*m))
	maps.Copy(fresh, *m)
	*m, *peak = fresh, len(fresh)
}

// Clear returns s without its elements, and without its array if that is large.
func Clear[E any](s []E) []E {
	if cap(s) >= smallest {
		return nil
	}
	clear(s)
	return s[:0]
}

// Pop returns s without its last element. When three quarters of the array are
// free, s moves to one of half its size.
func Pop[E any](s []E) []E {
	last := len(s) - 1
	var none E
	s[last] = none
	s = s[:last]
	if cap(s) < smallest || len(s) > cap(s)/4 {
		return s
	}
	return append(make([]E, 0, cap(s)/2), s...)
}
