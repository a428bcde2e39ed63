package pool

import "sync/atomic"

// A bucket is a count of tokens spent, and a queue of participants that wait for tokens.
// There are no grants: the first participant in the queue takes tokens when there are
// enough, which it computes from the count and the time. So only the first place has to
// be handed on. A participant that leaves the queue, or moves back in it, stores its want
// first, then reads which one is first, and rings it; a participant that enters stores
// its want first and then reads whether it is first itself. If two do so at the same
// time, the later one sees the store of the earlier one.

// bucket is the part of the region that belongs to a bucket.
type bucket struct {
	queue
	spent *word // the count of tokens spent
}

// bucketWords is the size of a bucket: a line with the mask and the count, and a
// line for each participant.
func (s Shape) bucketWords() int { return lineWords * (1 + s.Participants) }

// need is the number of tokens that the first waiter of participant i needs.
func (b *bucket) need(i int) *word { return (*word)(&b.wants[i*lineWords+1]) }

// asks counts how often participant i has asked for tokens while it was queued.
func (b *bucket) asks(i int) *word { return (*word)(&b.wants[i*lineWords+2]) }

// heartbeats counts the calls of Heartbeat by participant i. It is used only to detect
// that i is stopped, so it is not a word of the protocol.
func (b *bucket) heartbeats(i int) *uint64 { return &b.wants[i*lineWords+3] }

// front returns the first of the queued participants in the mask of, and what it wants;
// -1 if none is queued. It takes dead participants out of the queue. If a new participant
// joins in such an entry and waits at the same time, it is taken out too, until it calls
// Heartbeat.
func (p *Pool) front(b *bucket, of uint64) (i int, want uint64) {
	for mask := b.mask.load() & of; mask != 0; mask = b.mask.load() & of {
		i, want = b.best(mask)
		if isLive(p.state(i).load()) {
			return i, want
		}
		b.mask.clear(1 << i)
	}
	return -1, 0
}

// pass rings the first participant in the queue, unless that is i.
func (p *Pool) pass(b *bucket, i int) {
	if first, _ := p.front(b, allParticipants); first >= 0 && first != i {
		p.ring(first)
	}
}

const allParticipants = 1<<ParticipantsMax - 1

// BucketHandle is a participant's access to one bucket.
type BucketHandle struct {
	member *Member
	bucket *bucket
	stall  stall // see Evict
}

// Spent returns the count of tokens spent.
func (h *BucketHandle) Spent() int64 { return int64(h.bucket.spent.load()) }

// Spend replaces the count of tokens spent if it still equals seen, and reports whether
// it did.
func (h *BucketHandle) Spend(seen, spent int64) bool {
	return h.bucket.spent.cas(uint64(seen), uint64(spent))
}

// MayTake reports whether an entry of the given tier precedes all waiters of other
// participants: because its tier is higher, or because this participant waits in
// that tier and is first.
func (h *BucketHandle) MayTake(tier int) bool {
	m, b := h.member, h.bucket
	i, want := m.pool.front(b, ^m.bit)
	if b.want(m.index).load() != 0 {
		b.asks(m.index).increment()
	}
	if i < 0 || tierOf(want) < tier {
		return true
	}
	mine := b.want(m.index).load()
	return tierOf(mine) == tier && (before(mine, want) || m.index < i && !before(want, mine))
}

// Elsewhere returns the highest tier that waits in other participants, or -1.
func (h *BucketHandle) Elsewhere() (tier int) {
	i, want := h.member.pool.front(h.bucket, ^h.member.bit)
	if i < 0 {
		return -1
	}
	return tierOf(want)
}

// Enqueue sets the want of the participant, and the number of tokens that its first waiter
// needs; both are valid until the next call. It reports whether the participant is first
// in the queue. If it moves back or leaves, the first participant is rung, because this one
// may have been first until then; so the participant is rung itself when it may have become
// first.
func (h *BucketHandle) Enqueue(want Want, need int64) (first bool) {
	m, b := h.member, h.bucket
	b.need(m.index).store(uint64(need))
	was, is := b.want(m.index).load(), want.word()
	b.want(m.index).store(is)
	if want.Count > 0 {
		h.Heartbeat()
		i, _ := m.pool.front(b, allParticipants)
		first = i == m.index
	} else {
		b.mask.clear(m.bit)
	}
	if before(was, is) { // 0, for no waiters, is before nothing
		m.pool.pass(b, m.index)
	}
	return first
}

// Heartbeat puts the participant, which waits, into the queue again if it was taken out. Waiters call it
// once a period, and then call MayTake if it reported false before: the participants
// before them may have died.
func (h *BucketHandle) Heartbeat() {
	m, b := h.member, h.bucket
	atomic.AddUint64(b.heartbeats(m.index), 1)
	if b.mask.load()&m.bit == 0 {
		b.mask.set(m.bit)
	}
}

// Wake rings the first participant in the queue: there are more tokens than it has
// computed.
func (h *BucketHandle) Wake() { h.member.pool.pass(h.bucket, h.member.index) }

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
func (h *BucketHandle) Evict(holds int64) {
	m, b, s := h.member, h.bucket, &h.stall
	i, want := m.pool.front(b, allParticipants)
	if i < 0 || i == m.index {
		*s = stall{}
		return
	}
	if asks := b.asks(i).load(); s.want != want || s.asks != asks {
		*s = stall{want: want, asks: asks, heartbeats: s.heartbeats}
	}
	if heartbeats := atomic.LoadUint64(b.heartbeats(i)); s.heartbeats != heartbeats {
		s.heartbeats, s.still = heartbeats, 0
	}
	s.still++
	if s.idle++; holds < int64(b.need(i).load()) {
		s.idle = 0
	}
	if s.idle > periodsMax || s.still > stillMax {
		b.mask.clear(1 << i)
	}
}
