package pool

import "errors"

// ErrFull is returned by [Pool.Join] if each entry belongs to a living participant.
var ErrFull = errors.New("pool: no entry for another participant is free")

// Member is one participant. It has a [Handle] for each limit and a [BucketHandle] for each
// bucket; its own methods concern all of them.
//
// The caller must serialize Take and Try of one Handle with one lock, and Want, Check,
// Reap, ReapOwners, Sweep, Usage, Evict and State with one lock, which may be a different
// one. The other methods may be called at any time.
type Member struct {
	pool    *Pool
	index   int
	bit     uint64         // in masks
	held    uint64         // the word of a slot that this participant holds
	handles []Handle       // one per limit
	buckets []BucketHandle // one per bucket

	sightings [][]sighting // one per slot of each limit: see takeBack
}

// Join adds a participant with this PID and name. It fails with [ErrFull].
func (p *Pool) Join(pid int, name string) (*Member, error) {
	for i := range p.shape.Participants {
		if !p.host.Lock(joinLock(i)) {
			continue
		}
		generation := p.claimEntry(i)
		joined := generation != 0
		if joined {
			p.sign(i, pid, name)
			p.state(i).store(stateOf(generation))
			p.entry(0, entryJoins).increment()
		}
		p.host.Unlock(joinLock(i))
		if joined {
			return p.member(i, generation), nil
		}
	}
	return nil, ErrFull
}

// claimEntry takes the life lock of entry i and returns the generation of the new
// participant, or 0 if the entry belongs to a living participant.
func (p *Pool) claimEntry(i int) (generation uint64) {
	p.examine(i)
	was := p.state(i).load()
	if isLive(was) || !p.host.Lock(lifeLock(i)) {
		return 0
	}
	p.vacate(i)
	return generationOf(was) + 1
}

func (p *Pool) member(i int, generation uint64) *Member {
	m := &Member{pool: p, index: i, bit: 1 << i, held: owned(i, generation)}
	for l := range p.limits {
		m.handles = append(m.handles, newHandle(m, &p.limits[l]))
		m.sightings = append(m.sightings, make([]sighting, p.limits[l].count))
	}
	for b := range p.buckets {
		m.buckets = append(m.buckets, BucketHandle{member: m, bucket: &p.buckets[b]})
	}
	return m
}

// Leave releases everything that the participant holds, and its entry. m must not be
// used afterwards.
func (m *Member) Leave() {
	m.pool.state(m.index).store(gone(m.pool.state(m.index).load()))
	m.pool.vacate(m.index)
	m.pool.host.Unlock(lifeLock(m.index))
}

// vacate releases what participant i held. The caller must hold the life lock of i, and
// i must be marked as gone.
func (p *Pool) vacate(i int) {
	for n := range p.limits {
		l := &p.limits[n]
		l.want(i).store(0)
		l.mask.clear(1 << i)
		p.recoverSlots(l)
	}
	for n := range p.buckets {
		b := &p.buckets[n]
		b.want(i).store(0)
		b.mask.clear(1 << i)
		p.pass(b, i)
	}
}

// Handle returns the participant's handle of a limit.
func (m *Member) Handle(limit int) *Handle { return &m.handles[limit] }

// BucketHandle returns the participant's handle of a bucket.
func (m *Member) BucketHandle(bucket int) *BucketHandle { return &m.buckets[bucket] }

// Index is the index of the participant's entry in the table.
func (m *Member) Index() int { return m.index }

// Ring wakes m, or keeps it from falling asleep.
func (m *Member) Ring() { m.pool.ring(m.index) }

// Touch changes the bell, so that m does not fall asleep. It does not wake m.
func (m *Member) Touch() { m.pool.entry(m.index, entryBell).increment() }

// Bell returns the current value of m's bell; see [Pool.Bell].
func (m *Member) Bell() uint64 { return m.pool.entry(m.index, entryBell).load() }
