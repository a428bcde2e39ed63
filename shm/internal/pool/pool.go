// Package pool is the protocol by which the processes of a machine share slots
// in memory that they all see: how one is taken, waited for, handed on and given
// back, and how what a dead process had comes back. It knows nothing of files,
// locks and threads; [Host] stands for those.
//
// # What is shared
//
// A table of participants, and for each limit its slots, a mask of those who
// wait, and for each participant a word that says what of it waits. Ownership is
// in the slots' words alone. The mask and the wants are about waking, and what a
// death leaves in them is made good by those who wait.
//
// # How nobody sleeps beside a free slot
//
// While participants live and run, no slot is free and somebody in the mask,
// except while somebody is in Pool.place who will see it. A slot is freed
// first, and the mask is read then; a participant enters the mask first, and the
// slots are read then. So one of the two sees the other. Whoever grants a slot
// takes the receiver out of the mask, so that one who is stopped gets one slot
// and not all of them; a receiver that is woken takes its slot, or finds none and
// enters again.
//
// A participant that dies or is stopped inside this may leave a waiter asleep.
// Therefore those who wait call [Member.Sweep] from time to time.
package pool

import "fmt"

// ParticipantsMax is how many processes can take part: the bits of a mask.
const ParticipantsMax = 64

// Tiers is the number of priorities. Tier 0 is the lowest.
const Tiers = 7

// Shape is what a region has room for. All participants have to agree on it.
type Shape struct {
	Participants int   // from 1 to ParticipantsMax
	Limits       []int // the slots of each, at least 1
	Buckets      int
}

// The unit of the layout is a line of a processor's cache. What different
// participants write is on lines of their own.
const lineWords = 8

// The words of a participant's entry. The bell is on the second line: it is
// written by whoever wakes the participant, the first one hardly ever.
const (
	entryState  = 0
	entryPID    = 1
	entryName   = 2 // and nameWords - 1 more
	nameWords   = 4
	entryReaped = entryName + nameWords // of the first entry: when Sweep last called Reap
	entryJoins  = entryReaped + 1       // of the first entry: how many have ever joined
	entryBell   = lineWords
	entryWords  = 2 * lineWords
)

// strideOf is how many words lie between the slots of a limit. Slots of a small
// limit have a line each: two processes that share one take three times as long.
func strideOf(slots int) int {
	if slots <= 64 {
		return lineWords
	}
	return 1
}

// limitWords is the room of a limit: a line with the mask, a line with each
// participant's want, and the slots in whole lines.
func (s Shape) limitWords(slots int) int {
	return lineWords*(1+s.Participants) + (slots*strideOf(slots)+lineWords-1)/lineWords*lineWords
}

// Words is how many words a region of this shape takes.
func (s Shape) Words() int {
	n := s.Participants * entryWords
	for _, slots := range s.Limits {
		n += s.limitWords(slots)
	}
	return n + s.Buckets*s.bucketWords()
}

// Host is what the protocol needs of the system. All methods may be called from
// any goroutine, and none of them blocks.
type Host interface {
	// Lock takes a lock, unless another process has it. A lock that its process
	// did not give back ends with the process.
	Lock(lock int) bool
	// Unlock gives a lock back.
	Unlock(lock int)
	// Held reports whether another process has a lock.
	Held(lock int) bool
	// Stopped reports whether a participant's process is stopped by a signal. It reports
	// false where that cannot be seen.
	Stopped(participant int) bool
	// Wake wakes who sleeps until a participant's bell changes.
	Wake(participant int)
}

// A participant holds the lock of its life as long as it lives, and nothing else
// tells whether it does. Whoever joins in its place has the lock of the place
// until that is done, and only then that of its life: one that is stopped between
// does not seem to be its dead predecessor, alive.
func life(i int) (lock int) { return i }

func place(i int) (lock int) { return ParticipantsMax + i }

// Pool is a region, as seen by one process.
type Pool struct {
	mem   []uint64
	shape Shape
	host  Host

	limits, buckets []limit
}

// limit is one limit's part of the region, or a bucket's, which has no slots.
type limit struct {
	mask   *word // a bit for each participant that waits and that nobody has granted a slot
	spent  *word // of a bucket: the count of tokens
	wants  []uint64
	slots  []uint64
	count  int // of slots
	stride int
}

// New returns the pool in mem, which is as long as the shape says and begins on
// a line of its own. A new region is all zeros.
func New(mem []uint64, shape Shape, host Host) *Pool {
	if len(mem) != shape.Words() {
		panic(fmt.Sprintf("pool: %d words for a shape of %d", len(mem), shape.Words()))
	}
	p := &Pool{mem: mem, shape: shape, host: host}
	at := shape.Participants * entryWords
	for _, slots := range shape.Limits {
		part := mem[at : at+shape.limitWords(slots)]
		p.limits = append(p.limits, limit{
			mask:   (*word)(&part[0]),
			wants:  part[lineWords:],
			slots:  part[lineWords*(1+shape.Participants):],
			count:  slots,
			stride: strideOf(slots),
		})
		at += len(part)
	}
	for range shape.Buckets {
		part := mem[at : at+shape.bucketWords()]
		p.buckets = append(p.buckets, limit{
			mask:  (*word)(&part[0]),
			spent: (*word)(&part[1]),
			wants: part[lineWords:],
		})
		at += len(part)
	}
	return p
}

func (p *Pool) entry(i, offset int) *word { return (*word)(&p.mem[i*entryWords+offset]) }

func (p *Pool) state(i int) *word { return p.entry(i, entryState) }

// Bell returns the word that changes when a participant is to look whether it
// got a slot. Who sleeps does so until it is no longer what it was before looking.
func (p *Pool) Bell(i int) *uint64 { return (*uint64)(p.entry(i, entryBell)) }

// ring wakes a participant, or keeps it from falling asleep.
func (p *Pool) ring(i int) {
	p.entry(i, entryBell).increment()
	p.host.Wake(i)
}

func (l *limit) want(i int) *word { return (*word)(&l.wants[i*lineWords]) }

func (l *limit) slot(s int) *word { return (*word)(&l.slots[s*l.stride]) }

// lives reports whether the owner of a slot is the one that its entry is for now.
func (p *Pool) lives(slot uint64) bool {
	return p.state(indexOf(slot)).load() == stateOf(eraOf(slot))
}

// next is the slot to look at after s.
func (l *limit) next(s int) int {
	if s++; s < l.count {
		return s
	}
	return 0
}
