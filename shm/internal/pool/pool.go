// Package pool is the protocol by which the processes of a machine share slots
// in common memory: how a slot is taken, waited for, handed on and released, and
// how the slots of a dead process are recovered. It does not use files, locks or
// threads itself; [Host] stands for those.
//
// # What is shared
//
// A table of participants, and for each limit its slots, a mask of the participants
// that wait, and one word per participant, the want, that describes its waiters.
// Ownership is recorded in the slots' words only. The mask and the wants serve to wake
// waiters; what a death leaves in them is repaired by the participants that wait.
//
// # Why no waiter sleeps while a slot is free
//
// While participants live and run, a slot is never free while the mask is not empty,
// unless a participant is in Pool.place and about to read that mask. A release
// frees the slot first and reads the mask afterwards; a waiter enters the mask first
// and reads the slots afterwards. So at least one of the two sees the other. A grant
// takes the receiver out of the mask, so that a stopped participant receives one slot
// and not all of them; a receiver that is woken takes its slot, or finds none and
// enters the mask again.
//
// A participant that dies or is stopped within these steps may leave a waiter asleep.
// Therefore waiters call [Member.Sweep] from time to time.
//
// # Parts
//
// [Pool.Join] returns a [Member]: an entry in the table, its bell, and what concerns all
// limits and buckets. The Member has a [Handle] for each limit and a [BucketHandle] for
// each bucket.
//
//   - pool.go: Pool and the layout of the table and the limits; Host
//   - word.go: the accesses to shared words, where the search stops the code
//   - owner.go: the word of a slot, and the state of a participant
//   - want.go: Want and its word, by which waiters are compared
//   - queue.go: the participants that wait for a limit or a bucket
//   - member.go: Member: joins and leaves
//   - handle.go: Handle: takes, releases and waits for slots of a limit
//   - grant.go: how a free slot is granted to a waiter
//   - bucket.go: BucketHandle: tokens of a bucket, and turns among its waiters
//   - repair.go: recovers slots of the dead, and takes back grants of the stopped
//   - peers.go: the other participants that wait, by their place in the table
//   - usage.go: which participants hold slots or wait, for people
package pool

import "fmt"

// ParticipantsMax is the maximum number of participating processes: the bits of a mask.
const ParticipantsMax = 64

// Tiers is the number of priorities. Tier 0 is the lowest.
const Tiers = 7

// Shape is the number of entries of a region. All participants must use the same shape.
type Shape struct {
	Participants int   // from 1 to ParticipantsMax
	Limits       []int // number of slots of each limit, at least 1
	Buckets      int
}

// The layout is in units of a processor's cache line. Words that different
// participants write are on different lines.
const lineWords = 8

// The words of a participant's entry. The bell is on the second line: every
// participant that wakes this one writes it, while the first line hardly ever changes.
const (
	entryState  = 0
	entryPID    = 1
	entryName   = 2 // this word and the nameWords - 1 that follow
	nameWords   = 4
	entryReaped = entryName + nameWords // in entry 0 only: time of the last Reap by Sweep
	entryJoins  = entryReaped + 1       // in entry 0 only: number of calls of Join that succeeded
	entryBell   = lineWords
	entryWords  = 2 * lineWords
)

// strideOf is the distance between the slots of a limit, in words. Each slot of a small
// limit has a cache line of its own: with two slots on one line both take three times as
// long.
func strideOf(slots int) int {
	if slots <= 64 {
		return lineWords
	}
	return 1
}

// limitWords is the size of a limit: a line with the mask, a line for each
// participant's want, and the slots in whole lines.
func (s Shape) limitWords(slots int) int {
	return lineWords*(1+s.Participants) + (slots*strideOf(slots)+lineWords-1)/lineWords*lineWords
}

// Words is the size of a region of this shape, in words.
func (s Shape) Words() int {
	n := s.Participants * entryWords
	for _, slots := range s.Limits {
		n += s.limitWords(slots)
	}
	return n + s.Buckets*s.bucketWords()
}

// Host is the operating system as the protocol uses it. All methods may be called from
// any goroutine, and none of them blocks.
type Host interface {
	// Lock takes a lock and reports true, unless another process holds it. When a process
	// ends, its locks are released.
	Lock(lock int) bool
	// Unlock releases a lock.
	Unlock(lock int)
	// Held reports whether another process holds a lock.
	Held(lock int) bool
	// Stopped reports whether a participant's process is stopped by a signal. It reports
	// false if the host cannot determine that.
	Stopped(participant int) bool
	// Wake wakes the threads that sleep until a bell changes: see [Pool.Bell].
	Wake(bell *uint64)
}

// A participant holds its life lock as long as it lives; nothing else determines whether
// it is alive. A joining process holds the join lock of an entry while it joins, and
// takes the life lock only after it has marked the predecessor as gone: if it took the
// lock earlier and were stopped, the dead predecessor would appear to be alive.
func lifeLock(i int) (lock int) { return i }

func joinLock(i int) (lock int) { return ParticipantsMax + i }

// Pool is one process's view of a region.
type Pool struct {
	mem   []uint64
	shape Shape
	host  Host

	limits  []limit
	buckets []bucket
}

// limit is the part of the region that belongs to a limit.
type limit struct {
	queue
	slots  []uint64
	count  int // number of slots
	stride int
}

// New returns the pool in mem, which must have exactly shape.Words() words and begin at
// a cache line. A new region is all zeros.
func New(mem []uint64, shape Shape, host Host) *Pool {
	if len(mem) != shape.Words() {
		panic(fmt.Sprintf("pool: %d words for a shape of %d", len(mem), shape.Words()))
	}
	p := &Pool{mem: mem, shape: shape, host: host}
	at := shape.Participants * entryWords
	for _, slots := range shape.Limits {
		part := mem[at : at+shape.limitWords(slots)]
		p.limits = append(p.limits, limit{
			queue:  newQueue(part),
			slots:  part[lineWords*(1+shape.Participants):],
			count:  slots,
			stride: strideOf(slots),
		})
		at += len(part)
	}
	for range shape.Buckets {
		part := mem[at : at+shape.bucketWords()]
		p.buckets = append(p.buckets, bucket{newQueue(part), (*word)(&part[1])})
		at += len(part)
	}
	return p
}

func (p *Pool) entry(i, offset int) *word { return (*word)(&p.mem[i*entryWords+offset]) }

func (p *Pool) state(i int) *word { return p.entry(i, entryState) }

// Bell returns the word that changes when participant i has to check whether it has a
// slot or is first in a queue. A sleeper reads the word before it checks, and sleeps
// until the word differs.
func (p *Pool) Bell(i int) *uint64 { return (*uint64)(p.entry(i, entryBell)) }

// ring wakes participant i, or keeps it from falling asleep.
func (p *Pool) ring(i int) {
	bell := p.entry(i, entryBell)
	bell.increment()
	p.host.Wake((*uint64)(bell))
}

func (l *limit) slot(s int) *word { return (*word)(&l.slots[s*l.stride]) }

// lives reports whether the generation that owns a slot is the current one of its entry.
func (p *Pool) lives(slot uint64) bool {
	return p.state(indexOf(slot)).load() == stateOf(generationOf(slot))
}

// next returns the slot to examine after s.
func (l *limit) next(s int) int {
	if s++; s < l.count {
		return s
	}
	return 0
}
