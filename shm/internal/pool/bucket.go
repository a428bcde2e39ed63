package pool

import "sync/atomic"

// A bucket is a count of tokens spent, and a queue of participants that wait for tokens.
// There are no grants: the first participant in the queue takes tokens when there are
// enough, which it computes from the count and the time. So only the first place has to
// be handed on. A participant that leaves the queue, or moves back in it, stores its want
// first, then reads which one is first, and rings it; a participant that enters stores
// its want first and then reads whether it is first itself. If two do so at the same
// time, the later one sees the store of the earlier one.

// bucketWords is the size of a bucket: a line with the mask and the count, and a
// line for each participant.
func (s Shape) bucketWords() int { return lineWords * (1 + s.Participants) }

// need is the number of tokens that the first waiter of participant i needs.
func (l *limit) need(i int) *word { return (*word)(&l.wants[i*lineWords+1]) }

// asks counts how often participant i has asked for tokens while it was queued.
func (l *limit) asks(i int) *word { return (*word)(&l.wants[i*lineWords+2]) }

// heartbeats counts the calls of Heartbeat by participant i. It is used only to detect
// that i is stopped, so it is not a word of the protocol.
func (l *limit) heartbeats(i int) *uint64 { return &l.wants[i*lineWords+3] }

// front returns the first of the queued participants in the mask of, and what it wants;
// -1 if none is queued. It takes dead participants out of the queue. If a new participant
// joins in such an entry and waits at the same time, it is taken out too, until it calls
// Heartbeat.
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

// pass rings the first participant in the queue, unless that is i.
func (p *Pool) pass(l *limit, i int) {
	if first, _ := p.front(l, allParticipants); first >= 0 && first != i {
		p.ring(first)
	}
}

const allParticipants = 1<<ParticipantsMax - 1

// Spent returns the count of tokens spent.
func (m *Member) Spent(bucket int) int64 { return int64(m.pool.buckets[bucket].spent.load()) }

// Spend replaces the count of tokens spent if it still equals seen, and reports whether
// it did.
func (m *Member) Spend(bucket int, seen, spent int64) bool {
	return m.pool.buckets[bucket].spent.cas(uint64(seen), uint64(spent))
}

// MayTake reports whether an entry of the given tier precedes all waiters of other
// participants: because its tier is higher, or because m waits in that tier and is first.
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

// Elsewhere returns the highest tier that waits in other participants, or -1.
func (m *Member) Elsewhere(bucket int) (tier int) {
	i, want := m.pool.front(&m.pool.buckets[bucket], ^m.bit)
	if i < 0 {
		return -1
	}
	return tierOf(want)
}

// Enqueue sets the want of m, and the number of tokens that its first waiter needs; both
// are valid until the next call. It reports whether m is first in the queue. If m was
// first and moves back, the next one is rung; m is rung when it may have become first.
func (m *Member) Enqueue(bucket int, want Want, need int64) (first bool) {
	l := &m.pool.buckets[bucket]
	l.need(m.index).store(uint64(need))
	was, is := l.want(m.index).load(), want.word()
	l.want(m.index).store(is)
	if want.Count > 0 {
		m.Heartbeat(bucket)
		i, _ := m.pool.front(l, allParticipants)
		first = i == m.index
	} else {
		l.mask.clear(m.bit)
	}
	if was != 0 && before(was, is) {
		m.pool.pass(l, m.index)
	}
	return first
}

// Heartbeat puts m into the queue again, if it waits and was taken out. Waiters call it
// once a period, and then call MayTake if it reported false before: the participants
// before them may have died.
func (m *Member) Heartbeat(bucket int) {
	l := &m.pool.buckets[bucket]
	atomic.AddUint64(l.heartbeats(m.index), 1)
	if l.mask.load()&m.bit == 0 {
		l.mask.set(m.bit)
	}
}

// Wake rings the first participant in the queue: there are more tokens than it has
// computed.
func (m *Member) Wake(bucket int) { m.pool.pass(&m.pool.buckets[bucket], m.index) }

// stall counts in how many sweeps in a row the same participant was first in the queue.
type stall struct {
	want, asks, heartbeats uint64
	idle                   int // while there were enough tokens for it and it did not ask for them
	still                  int // without a call of Heartbeat
}

// stillMax is the number of periods for which a participant may be first in the queue
// without calling Heartbeat: about a second. With as few as periodsMax, a participant
// that waits for long would lose its place whenever the machine stalls.
const stillMax = 100

// Evict takes the first participant out of the queue if it appears to be stopped: it has
// not taken the tokens that it needs for more than periodsMax periods, or has not run for
// stillMax. It enters again when it runs. holds is the number of tokens in the bucket.
// Waiters call Evict once a period.
func (m *Member) Evict(bucket int, holds int64) {
	l, s := &m.pool.buckets[bucket], &m.stalls[bucket]
	i, want := m.pool.front(l, allParticipants)
	if i < 0 || i == m.index {
		*s = stall{}
		return
	}
	if asks := l.asks(i).load(); s.want != want || s.asks != asks {
		*s = stall{want: want, asks: asks, heartbeats: s.heartbeats}
	}
	if heartbeats := atomic.LoadUint64(l.heartbeats(i)); s.heartbeats != heartbeats {
		s.heartbeats, s.still = heartbeats, 0
	}
	s.still++
	if s.idle++; holds < int64(l.need(i).load()) {
		s.idle = 0
	}
	if s.idle > periodsMax || s.still > stillMax {
		l.mask.clear(1 << i)
	}
}
