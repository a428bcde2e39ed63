package backlog

import (
	"container/heap"

	"github.com/Workiva/go-datastructures/queue"
)

// item is an entry of the peers: higher tiers first, then in order of arrival.
type item struct {
	tier   int
	ticket uint64
	place  int // index in the heap, which is what finds it again for cancel
}

func (it *item) before(other *item) bool {
	if it.tier != other.tier {
		return it.tier > other.tier
	}
	return it.ticket < other.ticket
}

// itemHeap is container/heap as its documentation shows it.
type itemHeap []*item

func (h itemHeap) Len() int           { return len(h) }
func (h itemHeap) Less(i, j int) bool { return h[i].before(h[j]) }
func (h itemHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *itemHeap) Push(x any) {
	it := x.(*item)
	it.place = len(*h)
	*h = append(*h, it)
}

func (h *itemHeap) Pop() any {
	last := len(*h) - 1
	it := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return it
}

type heapQueue struct {
	heap   itemHeap
	items  []*item
	ticket uint64
}

func newHeap(tiers []int) *heapQueue {
	q := &heapQueue{heap: make(itemHeap, 0, len(tiers)), items: make([]*item, 0, len(tiers))}
	for _, tier := range tiers {
		it := &item{tier: tier}
		q.items = append(q.items, it)
		q.push(it)
	}
	return q
}

func (q *heapQueue) push(it *item) {
	q.ticket++
	it.ticket = q.ticket
	heap.Push(&q.heap, it)
}

func (q *heapQueue) next() bool {
	if len(q.heap) == 0 {
		return false
	}
	q.push(heap.Pop(&q.heap).(*item))
	return true
}

func (q *heapQueue) forget() { q.items = nil }

func (q *heapQueue) cancel(i int) bool {
	it := heap.Remove(&q.heap, q.items[i].place).(*item)
	q.push(it)
	return it == q.items[i]
}

// Compare orders the items of Workiva's queue.
func (it *item) Compare(other queue.Item) int {
	switch o := other.(*item); {
	case it.before(o):
		return -1
	case o.before(it):
		return 1
	default:
		return 0
	}
}

// workivaQueue takes a lock for each call, which the others leave to their
// caller. It cannot remove.
type workivaQueue struct {
	queue  *queue.PriorityQueue
	ticket uint64
}

func newWorkiva(tiers []int) *workivaQueue {
	q := &workivaQueue{queue: queue.NewPriorityQueue(len(tiers), true)}
	for _, tier := range tiers {
		q.push(&item{tier: tier})
	}
	return q
}

func (q *workivaQueue) push(it *item) bool {
	q.ticket++
	it.ticket = q.ticket
	return q.queue.Put(it) == nil
}

func (q *workivaQueue) next() bool {
	items, err := q.queue.Get(1)
	return err == nil && q.push(items[0].(*item))
}

// forget has nothing to drop.
func (q *workivaQueue) forget() {}
