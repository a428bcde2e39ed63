package machine

import (
	"hash/maphash"

	"github.com/stintgo/stint/queue"
)

// index is a hash table from IDs to the numbers of tasks. It stores only the numbers, and
// looks up the IDs with id. It takes 5.3 to 10.7 bytes for each task; a Go map would take
// ten times as much, and would move all its elements at once when it grows.
//
// It uses open addressing with linear probing, and deletion by moving back the following
// elements (Knuth, The Art of Computer Programming, vol. 3, section 6.4, algorithm R). It
// is divided into shards that grow separately: at ten million tasks a shard has 40,000,
// and grows in milliseconds. The caller of each method holds the lock of the machine.
type index struct {
	seed   maphash.Seed // random, because submitters choose the IDs and could cause collisions
	id     func(no uint32) *queue.ID
	shards [shards]shard
}

const (
	shardBits = 8
	shards    = 1 << shardBits
	smallest  = 8 // slots of a shard
)

type shard struct {
	slots []uint32 // numbers, 0 for none; a power of two
	n     int
}

func (x *index) hash(id *queue.ID) uint64 { return maphash.Bytes(x.seed, id[:]) }

func (x *index) shard(hash uint64) *shard { return &x.shards[hash>>(64-shardBits)] }

// get returns a task's number, 0 if there is none.
func (x *index) get(id *queue.ID) uint32 {
	hash := x.hash(id)
	s := x.shard(hash)
	if s.n == 0 {
		return 0
	}
	return s.slots[x.find(s, hash, id)]
}

// find returns the slot of an ID, or the empty one where it would be.
func (x *index) find(s *shard, hash uint64, id *queue.ID) int {
	i := s.home(hash)
	for s.slots[i] != 0 && *x.id(s.slots[i]) != *id {
		i = s.next(i)
	}
	return i
}

// put stores a number, which must not be in the index, in a slot. It reads no task,
// because most of them are not in the processor's cache.
func (s *shard) put(hash uint64, no uint32) {
	i := s.home(hash)
	for s.slots[i] != 0 {
		i = s.next(i)
	}
	s.slots[i] = no
}

func (s *shard) home(hash uint64) int { return int(hash & uint64(len(s.slots)-1)) }

func (s *shard) next(i int) int { return (i + 1) & (len(s.slots) - 1) }

// add adds a task, which must not be in the index.
func (x *index) add(id *queue.ID, no uint32) {
	hash := x.hash(id)
	s := x.shard(hash)
	if 4*(s.n+1) > 3*len(s.slots) {
		x.grow(s)
	}
	s.put(hash, no)
	s.n++
}

// fill adds the tasks with the numbers 1 to n to an empty index. It takes a fifth of the
// time of n calls of add, because shards are allocated in their final size and filled one
// after the other, in the processor's cache.
func (x *index) fill(n uint32) {
	type entry struct{ hash, no uint32 } // the part of the hash that gives the slot
	var ends [shards + 1]uint32
	for no := uint32(1); no <= n; no++ {
		ends[x.hash(x.id(no))>>(64-shardBits)+1]++
	}
	for i := range shards {
		ends[i+1] += ends[i]
	}
	all, next := make([]entry, n), ends
	for no := uint32(1); no <= n; no++ {
		hash := x.hash(x.id(no))
		at := &next[hash>>(64-shardBits)]
		all[*at] = entry{uint32(hash), no}
		*at++
	}
	for i := range x.shards {
		s, some := &x.shards[i], all[ends[i]:ends[i+1]]
		s.n = len(some)
		s.slots = make([]uint32, slotsFor(len(some)))
		for _, e := range some {
			s.put(uint64(e.hash), e.no)
		}
	}
}

// slotsFor returns the number of slots of a shard of n tasks: at least a quarter is free.
func slotsFor(n int) int {
	slots := smallest
	for 4*n > 3*slots {
		slots *= 2
	}
	return slots
}

func (x *index) grow(s *shard) {
	old := s.slots
	s.slots = make([]uint32, max(2*len(old), smallest))
	for _, no := range old {
		if no != 0 {
			s.put(x.hash(x.id(no)), no)
		}
	}
}

// remove removes a task, which must be in the index. It moves back the tasks after it
// that linear probing displaced, so that no slot is ever marked as deleted.
func (x *index) remove(id *queue.ID) {
	hash := x.hash(id)
	s := x.shard(hash)
	free := x.find(s, hash, id)
	for i := s.next(free); s.slots[i] != 0; i = s.next(i) {
		home := s.home(x.hash(x.id(s.slots[i])))
		if s.distance(home, i) >= s.distance(free, i) {
			s.slots[free] = s.slots[i]
			free = i
		}
	}
	s.slots[free] = 0
	s.n--
}

// distance returns the number of slots from one to another, in the direction of probing.
func (s *shard) distance(from, to int) int { return (to - from) & (len(s.slots) - 1) }
