package pool

import "math/bits"

// Peer returns the generation, from 1, and the PID of the living participant in entry i.
// The generation is 0 if there is none, or if it is m itself.
func (m *Member) Peer(i int) (generation uint64, pid int) {
	state := m.pool.state(i).load()
	if i == m.index || !isLive(state) {
		return 0, 0
	}
	return generationOf(state), m.pool.PID(i)
}

// Joins counts the participants that have ever joined. While it is unchanged, so is Peer.
func (m *Member) Joins() uint64 { return m.pool.entry(0, entryJoins).load() }

// Ahead counts the living participants before m in the table that wait for anything, and
// returns the index of the last of them, or -1. Stale bits of dead participants in the
// masks do not count.
func (m *Member) Ahead() (count, last int) {
	last = -1
	for ahead := m.pool.waiting() & (m.bit - 1); ahead != 0; ahead &= ahead - 1 {
		i := bits.TrailingZeros64(ahead)
		if isLive(m.pool.state(i).load()) {
			count, last = count+1, i
		}
	}
	return count, last
}

// RingNext rings the first living participant behind m in the table that waits for
// anything.
func (m *Member) RingNext() {
	for behind := m.pool.waiting() &^ (2*m.bit - 1); behind != 0; behind &= behind - 1 {
		i := bits.TrailingZeros64(behind)
		if isLive(m.pool.state(i).load()) {
			m.pool.ring(i)
			return
		}
	}
}

// waiting is the mask of the participants that wait for anything.
func (p *Pool) waiting() (mask uint64) {
	for i := range p.limits {
		mask |= p.limits[i].mask.load()
	}
	for i := range p.buckets {
		mask |= p.buckets[i].mask.load()
	}
	return mask
}
