package sched

import (
	"container/heap"

	"github.com/stintgo/stint/internal/shrink"
)

// resumes are the functions that wait to resume their slots, in the order in which they began
// to wait; a function whose key has no room is passed over. The functions of one key are a FIFO,
// so the first function whose key has room is the first of one of those FIFOs: nothing scans
// functions that wait for their key, of which there may be thousands. The engine's lock guards it.
type resumes struct {
	n     int
	keys  map[string]*keyResumes // those of the empty key stay when it has none
	peak  int                    // see shrink.Delete
	ready readyKeys              // the keys that have room, by their first function
	room  resumeSize             // of the keys that have room
	last  uint64                 // place of the function that began to wait last
}

// keyResumes are the functions of one key, in order. Those without a key are those of the empty
// key, which always has room.
type keyResumes struct {
	entryQueue
	resumeSize

	index int // in ready; meaningless if the key has no room
}

// resumeSize counts functions that wait to resume.
type resumeSize struct {
	n     int
	tiers [Tiers]int // n by tier
}

// plus adds another size, times sign.
func (s *resumeSize) plus(other *resumeSize, sign int) {
	s.n += sign * other.n
	for tier, n := range other.tiers {
		s.tiers[tier] += sign * n
	}
}

// count adds n functions like x.
func (s *resumeSize) count(x *entry, n int) {
	s.n += n
	s.tiers[x.Tier] += n
}

// highest returns the highest tier of a function, or -1.
func (s *resumeSize) highest() (tier int) {
	for tier = Tiers - 1; tier >= 0 && s.tiers[tier] == 0; tier-- {
	}
	return tier
}

// empty reports whether no function waits.
func (r *resumes) empty() bool { return r.n == 0 }

// first returns the first function whose key has room, or nil.
func (r *resumes) first() *entry {
	if len(r.ready) == 0 {
		return nil
	}
	return r.ready[0].first
}

// add adds a function behind all others. room says whether its key has room.
func (r *resumes) add(x *entry, room bool) {
	r.n++
	r.last++
	x.place = r.last
	k := r.keys[x.Key]
	if k == nil {
		k = new(keyResumes)
		r.keys[x.Key] = k
	}
	first := k.first == nil
	k.append(x)
	k.count(x, 1)
	if room {
		r.room.count(x, 1)
		if first {
			heap.Push(&r.ready, k)
		}
	}
}

// drop removes the function that first has returned.
func (r *resumes) drop() {
	r.n--
	k := r.ready[0]
	x := k.first
	k.first, x.link = x.link, nil
	k.count(x, -1)
	r.room.count(x, -1)
	if k.first != nil {
		heap.Fix(&r.ready, 0)
		return
	}
	heap.Pop(&r.ready)
	if x.Key != "" {
		shrink.Delete(&r.keys, &r.peak, x.Key)
	}
}

// turn takes a key out of the order when it has no room any more, and puts it back when it has.
func (r *resumes) turn(key string, room bool) {
	k := r.keys[key]
	switch {
	case k == nil:
	case room:
		heap.Push(&r.ready, k)
		r.room.plus(&k.resumeSize, 1)
	default:
		heap.Remove(&r.ready, k.index)
		r.room.plus(&k.resumeSize, -1)
	}
}

// readyKeys is a heap of keys.
type readyKeys []*keyResumes

func (h readyKeys) Len() int           { return len(h) }
func (h readyKeys) Less(i, j int) bool { return h[i].first.place < h[j].first.place }

func (h readyKeys) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push and Pop are called by package heap.
func (h *readyKeys) Push(x any) {
	k := x.(*keyResumes)
	k.index = len(*h)
	*h = append(*h, k)
}

func (h *readyKeys) Pop() any {
	k := (*h)[len(*h)-1]
	*h = shrink.Pop(*h)
	return k
}
