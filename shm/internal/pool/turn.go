package pool

import "sync/atomic"

// A bucket is a count of tokens spent, and a line of those who wait for tokens.
// Nobody is granted anything: the first in line takes tokens when there are enough,
// which it knows from the count and the time. So all that has to be passed on is
// the turn. Whoever leaves the line, or goes further back, says so first and then
// looks who is first, and rings; whoever enters it says so first and then looks
// whether it is first itself. Of two who do so at the same time, the one that is
// later sees the other.

// bucketWords is the room of a bucket: a line with the mask and the count, and a
// line for each participant.
func (s Shape) bucketWords() int { return lineWords * (1 + s.Participants) }

// need is how many tokens the first in line of a participant needs.
func (l *limit) need(i int) *word { return (*word)(&l.wants[i*lineWords+1]) }

// asks is how often a participant in line has asked for tokens.
func (l *limit) asks(i int) *word { return (*word)(&l.wants[i*lineWords+2]) }

// beats is how often a participant in line has called Stay. Nothing is decided by it
// but that one is stopped, so it is no word of the protocol.
func (l *limit) beats(i int) *uint64 { return &l.wants[i*lineWords+3] }

// front returns who is first in line, of some participants, and what it wants; -1
// if nobody is in line. The dead are taken out. If one joins in such a place and
// waits at the same time, it is taken out as well, until it calls Stay.
func (p *Pool) front(l *limit, of uint64) (i int, want uint64) {
	for mask := l.mask.load() & of; mask != 0; mask = l.mask.load() & of {
		i, want = l.best(mask)
		if isLive(p.state(i).load()) {
			return i, want
		}
		l.mask.clear(1 << i)
	}
	return -1, 0
}

// pass rings who is first in line, unless that is the participant i.
func (p *Pool) pass(l *limit, i int) {
	if first, _ := p.front(l, everybody); first >= 0 && first != i {
		p.ring(first)
	}
}

const everybody = 1<<ParticipantsMax - 1

// Spent returns the count of tokens spent.
func (m *Member) Spent(bucket int) int64 { return int64(m.pool.buckets[bucket].spent.load()) }

// Spend changes the count of tokens spent, unless it is not what was seen any more.
func (m *Member) Spend(bucket int, seen, spent int64) bool {
	return m.pool.buckets[bucket].spent.cas(uint64(seen), uint64(spent))
}

// MayTake reports whether an entry of a tier goes before all who wait elsewhere:
// because its tier is higher, or because m waits in that tier and is first.
func (m *Member) MayTake(bucket, tier int) bool {
	l := &m.pool.buckets[bucket]
	i, want := m.pool.front(l, ^m.bit)
	if l.want(m.index).load() != 0 {
		l.asks(m.index).increment()
	}
	if i < 0 || tierOf(want) < tier {
		return true
	}
	mine := l.want(m.index).load()
	return tierOf(mine) == tier && (before(mine, want) || m.index < i && !before(want, mine))
}

// Elsewhere returns the highest tier that waits elsewhere, or -1.
func (m *Member) Elsewhere(bucket int) (tier int) {
	i, want := m.pool.front(&m.pool.buckets[bucket], ^m.bit)
	if i < 0 {
		return -1
	}
	return tierOf(want)
}

// Stand says what of m waits, and how many tokens the first of that needs, until it
// says otherwise. It reports whether m is first in line. If it was, and no longer
// is, the next is rung; else m has its bell rung when it may have become first.
func (m *Member) Stand(bucket int, want Want, need int64) (first bool) {
	l := &m.pool.buckets[bucket]
	l.need(m.index).store(uint64(need))
	was, is := l.want(m.index).load(), want.word()
	l.want(m.index).store(is)
	if want.Count > 0 {
		m.Stay(bucket)
		i, _ := m.pool.front(l, everybody)
		first = i == m.index
	} else {
		l.mask.clear(m.bit)
	}
	if was != 0 && before(was, is) {
		m.pool.pass(l, m.index)
	}
	return first
}

// Stay puts m into the line again, if it waits and was taken out of it. Who waits
// calls it once a period, and then looks whether it may take, if it could not the
// last time: those who went first may have died.
func (m *Member) Stay(bucket int) {
	l := &m.pool.buckets[bucket]
	atomic.AddUint64(l.beats(m.index), 1)
	if l.mask.load()&m.bit == 0 {
		l.mask.set(m.bit)
	}
}

// Hurry rings who is first in line, because there are more tokens than it knows.
func (m *Member) Hurry(bucket int) { m.pool.pass(&m.pool.buckets[bucket], m.index) }

// stall is how often one sweep after the other has seen the same participant first
// in line.
type stall struct {
	want, asks, beats uint64
	idle              int // with enough tokens for it, and it has not asked for them
	still             int // and it has not called Stay
}

// stillMax is for how many periods a participant may be first in line without having
// called Stay: a second or so. One that waits for long would lose its place at every
// hitch of the machine if it were as few as periodsMax.
const stillMax = 100

// Overtake takes whoever is first in line out of it, if it is stopped: it has not
// taken for too many periods what the bucket holds for it, or has not run for far too
// many. It enters again when it runs. Whoever waits calls it once a period.
func (m *Member) Overtake(bucket int, holds int64) {
	l, s := &m.pool.buckets[bucket], &m.stalls[bucket]
	i, want := m.pool.front(l, everybody)
	if i < 0 || i == m.index {
		*s = stall{}
		return
	}
	if asks := l.asks(i).load(); s.want != want || s.asks != asks {
		*s = stall{want: want, asks: asks, beats: s.beats}
	}
	if beats := atomic.LoadUint64(l.beats(i)); s.beats != beats {
		s.beats, s.still = beats, 0
	}
	s.still++
	if s.idle++; holds < int64(l.need(i).load()) {
		s.idle = 0
	}
	if s.idle > periodsMax || s.still > stillMax {
		l.mask.clear(1 << i)
	}
}
