package pool

import "math/bits"

// queue is the part of the region that records which participants wait for a limit or a
// bucket: a line with the mask, and a line for each participant.
type queue struct {
	mask  *word // a bit for each participant that waits and has no grant yet
	wants []uint64
}

func newQueue(part []uint64) queue {
	return queue{mask: (*word)(&part[0]), wants: part[lineWords:]}
}

func (q *queue) want(i int) *word { return (*word)(&q.wants[i*lineWords]) }

// best returns the participant of a mask that is served first, and its want.
func (q *queue) best(mask uint64) (i int, want uint64) { return q.least(mask, before) }

// oldest returns the participant of a mask that has waited longest, and its want.
func (q *queue) oldest(mask uint64) (i int, want uint64) { return q.least(mask, earlier) }

func (q *queue) least(mask uint64, before func(a, b uint64) bool) (i int, want uint64) {
	i = bits.TrailingZeros64(mask)
	want = q.want(i).load()
	for mask &= mask - 1; mask != 0; mask &= mask - 1 {
		j := bits.TrailingZeros64(mask)
		if w := q.want(j).load(); before(w, want) {
			i, want = j, w
		}
	}
	return i, want
}
