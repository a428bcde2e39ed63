package receiver

import (
	"iter"
	"slices"
)

// lanesMax is the largest number of lanes of a file that are kept.
const lanesMax = 1 << 16

// lanes are the lanes of a file by their numbers; nil is a lane that was cancelled. Lanes do not overlap.
// The file's mutex guards the list and the offsets and lengths of its uploads.
type lanes []*upload

// all yields the lanes that were not cancelled.
func (l lanes) all() iter.Seq[*upload] {
	return func(yield func(*upload) bool) {
		for _, u := range l {
			if u != nil && !yield(u) {
				return
			}
		}
	}
}

// first returns the first lane that was not cancelled, or nil.
func (l lanes) first() *upload {
	for u := range l.all() {
		return u
	}
	return nil
}

// count returns the number of lanes that were not cancelled.
func (l lanes) count() (n int) {
	for range l.all() {
		n++
	}
	return n
}

// at returns the lane that has just a range, which ends before end, or nil if no lane overlaps the range.
func (l lanes) at(start, end int64) (*upload, error) {
	for u := range l.all() {
		switch {
		case u.start == start && u.start+u.length == end:
			return u, nil
		case max(u.start, start) < min(u.start+u.length, end): // an empty one overlaps none
			return nil, refuse(statusConflict, "the part overlaps the one of the bytes %d to %d", u.start, u.start+u.length)
		}
	}
	return nil, nil
}

// arrived checks that all lanes are complete.
func (l lanes) arrived() error {
	for u := range l.all() {
		if u.offset != u.length {
			return refuse(statusConflict, "upload %s has only %d of its %d bytes; send the rest", u.id, u.offset, u.length)
		}
	}
	return nil
}

// ranges returns the ranges that complete lanes cover, from the first byte to the one
// after the last.
func (l lanes) ranges() [][2]int64 {
	all := [][2]int64{}
	for u := range l.all() {
		if u.offset == u.length && u.length > 0 {
			all = append(all, [2]int64{u.start, u.start + u.length})
		}
	}
	slices.SortFunc(all, func(a, b [2]int64) int { return int(min(max(a[0]-b[0], -1), 1)) })
	joined := all[:0]
	for _, next := range all {
		if n := len(joined); n > 0 && joined[n-1][1] == next[0] {
			joined[n-1][1] = next[1]
			continue
		}
		joined = append(joined, next)
	}
	return joined
}
