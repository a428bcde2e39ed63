package sched //nolint:testpackage // the fifo, its chunks and their memory cannot be seen from outside

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/stintgo/stint/internal/seeded"
)

// queued is an item in the model of a fifo: its place, and its identity.
type queued struct {
	place uint64
	id    int64
}

// fifoWorld is a fifo and the slice that it is compared with. Several worlds share the
// spare chunks, as the tiers of a queue do.
type fifoWorld struct {
	t     *testing.T
	rnd   *rand.Rand
	f     fifo
	spare *spares
	want  []queued
	puts  int64

	emptied  [chunkLen]bool // offsets of the head at which the fifo has become empty
	takenOut int            // how often a chunk between others became empty
}

// ofFIFO is the job of all items; since identifies them.
var ofFIFO = new(nothing)

func (w *fifoWorld) put() {
	w.puts++
	want := w.f.tail
	place := w.f.put(item{job: ofFIFO, cancellation: new(cancellation), since: w.puts}, w.spare)
	if place != want {
		w.t.Fatalf("item %d is at %d, want %d", w.puts, place, want)
	}
	w.want = append(w.want, queued{place, w.puts})
}

func (w *fifoWorld) drop() {
	if first := w.f.first(); first.since != w.want[0].id {
		w.t.Fatalf("the first is item %d, want %d", first.since, w.want[0].id)
	}
	w.f.drop(w.spare)
	w.want = w.want[1:]
	w.left()
}

func (w *fifoWorld) remove(i int) {
	w.f.remove(w.want[i].place, w.spare)
	w.want = slices.Delete(w.want, i, i+1)
	w.left()
}

// left checks a few places after an item has left.
func (w *fifoWorld) left() {
	if len(w.want) == 0 {
		w.emptied[w.f.head%chunkLen] = true
	}
	w.look()
}

// removeChunk removes all items of one chunk, in one of three orders.
func (w *fifoWorld) removeChunk() (steps int) {
	i := w.rnd.IntN(len(w.want))
	chunk := w.want[i].place / chunkLen
	var items []queued
	for _, it := range w.want {
		if it.place/chunkLen == chunk {
			items = append(items, it)
		}
	}
	switch w.rnd.IntN(3) {
	case 0:
		slices.Reverse(items)
	case 1:
		w.rnd.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	}
	for _, it := range items {
		w.remove(slices.Index(w.want, it))
	}
	for _, c := range w.f.chunks {
		if c == nil {
			w.takenOut++
			break
		}
	}
	w.check()
	return len(items)
}

// look compares some places, most of them near an item.
func (w *fifoWorld) look() {
	if w.f.n != len(w.want) {
		w.t.Fatalf("%d items, want %d", w.f.n, len(w.want))
	}
	place := w.f.head
	if span := w.f.tail - w.f.base*chunkLen; span > 0 {
		place = w.f.base*chunkLen + w.rnd.Uint64N(span+3)
	}
	w.lookAt(place)
	if place > 0 {
		w.lookAt(place - 1)
	}
}

func (w *fifoWorld) lookAt(place uint64) {
	i, found := slices.BinarySearchFunc(w.want, place, func(it queued, place uint64) int {
		return int(int64(it.place) - int64(place))
	})
	it := w.f.at(place)
	if (it != nil) != found || found && it.since != w.want[i].id {
		w.t.Fatalf("at %d is %v, want one: %v", place, it, found)
	}
	next, ok := w.f.next(place)
	if ok != (i < len(w.want)) || ok && next != w.want[i].place {
		w.t.Fatalf("the next from %d on is at %d (%v), want %v", place, next, ok, w.want[i:min(i+1, len(w.want))])
	}
	if !found {
		return
	}
	if ahead := w.f.ahead(place); ahead != i {
		w.t.Fatalf("%d are ahead of place %d, want %d", ahead, place, i)
	}
}

// check compares everything, and checks the invariants of the chunks.
func (w *fifoWorld) check() {
	w.t.Helper()
	i := 0
	for place, ok := w.f.next(0); ok; place, ok = w.f.next(place + 1) {
		if i == len(w.want) || place != w.want[i].place || w.f.at(place).since != w.want[i].id {
			w.t.Fatalf("item %d of the fifo is at %d, want %v", i, place, w.want[i:min(i+1, len(w.want))])
		}
		i++
	}
	if i != len(w.want) {
		w.t.Fatalf("%d items are found, want %d", i, len(w.want))
	}
	if first := w.f.head; len(w.want) > 0 && first != w.want[0].place || len(w.want) == 0 && first != w.f.tail {
		w.t.Fatalf("the head is at %d, the tail at %d, of %d items", first, w.f.tail, len(w.want))
	}
	for at, c := range w.f.chunks {
		switch {
		case c != nil:
			w.checkChunk(at, c)
		case at == 0 || at == len(w.f.chunks)-1:
			w.t.Fatalf("chunk %d of %d is nil", at, len(w.f.chunks))
		}
	}
	var spare []*chunk
	for c, ok := w.spare.pool.Get().(*chunk); ok; c, ok = w.spare.pool.Get().(*chunk) {
		if !cleared(c) || c.dead != 0 || slices.Contains(w.f.chunks, c) || slices.Contains(spare, c) {
			w.t.Fatal("a spare chunk is in use")
		}
		spare = append(spare, c)
	}
	for _, c := range spare {
		w.spare.put(c)
	}
}

// checkChunk fails if a chunk keeps anything of an item that has left, or is kept without
// an item although it is not the last.
func (w *fifoWorld) checkChunk(at int, c *chunk) {
	w.t.Helper()
	live, dead := 0, 0
	for i := range c.items {
		place := (w.f.base+uint64(at))*chunkLen + uint64(i)
		switch it := &c.items[i]; {
		case it.job != nil:
			live++
		case it.cancellation != nil || it.since != 0:
			w.t.Fatalf("what has left place %d is still there", place)
		case place >= w.f.head && place < w.f.tail:
			dead++
		}
	}
	if dead != c.dead {
		w.t.Fatalf("chunk %d counts %d that have left, want %d", at, c.dead, dead)
	}
	if live == 0 && at < len(w.f.chunks)-1 {
		w.t.Fatalf("chunk %d of %d is kept and has no item", at, len(w.f.chunks))
	}
}

func cleared(c *chunk) bool {
	for i := range c.items {
		if it := &c.items[i]; it.job != nil || it.cancellation != nil || it.since != 0 {
			return false
		}
	}
	return true
}

// phase is the probability of each operation for a while, in percent; the rest is a look.
type phase struct{ put, drop, remove, removeFirst, removeLast, removeChunk int }

var phases = []phase{
	{put: 85, drop: 5, remove: 5, removeFirst: 5},
	{put: 60, remove: 35},
	{put: 45, drop: 50},
	{put: 30, drop: 30, remove: 20, removeFirst: 5, removeLast: 10, removeChunk: 1},
	{put: 48, removeLast: 47},
	{put: 20, drop: 20, remove: 50, removeChunk: 3},
	{put: 10, removeFirst: 80},
	{put: 10, removeLast: 80},
	{put: 90, removeChunk: 1},
}

// step performs one operation and returns how many steps it counts for.
func (w *fifoWorld) step(p phase) (steps int) {
	const most = 12 * chunkLen
	drawn := w.rnd.IntN(100)
	if drawn -= p.put; drawn < 0 && len(w.want) < most {
		w.put()
		return 1
	}
	if len(w.want) == 0 {
		w.put()
		return 1
	}
	if drawn -= p.drop; drawn < 0 {
		w.drop()
		return 1
	}
	if drawn -= p.remove; drawn < 0 {
		w.remove(w.rnd.IntN(len(w.want)))
		return 1
	}
	if drawn -= p.removeFirst; drawn < 0 {
		w.remove(0)
		return 1
	}
	if drawn -= p.removeLast; drawn < 0 {
		w.remove(len(w.want) - 1)
		return 1
	}
	if drawn -= p.removeChunk; drawn < 0 {
		return w.removeChunk()
	}
	w.look()
	return 1
}

// empty removes everything, in one of four orders.
func (w *fifoWorld) empty() (steps int) {
	how := w.rnd.IntN(4)
	for ; len(w.want) > 0; steps++ {
		switch how {
		case 0:
			w.drop()
		case 1:
			w.remove(len(w.want) - 1)
		case 2:
			w.remove(w.rnd.IntN(len(w.want)))
		default:
			w.remove(len(w.want) / 2)
		}
	}
	w.check()
	return steps
}

// A fifo has the same items as a slice, in the same order, after any operations. It
// becomes empty at every offset, and chunks between others become empty.
func TestModel_FIFOMatchesASlice(t *testing.T) {
	const fifos, steps = 3, 150_000
	rnd := seeded.Rand(t)
	var spare spares
	worlds := make([]*fifoWorld, fifos)
	for i := range worlds {
		worlds[i] = &fifoWorld{t: t, rnd: rnd, spare: &spare}
	}
	for done := 0; done < steps; {
		w, p := worlds[rnd.IntN(fifos)], phases[rnd.IntN(len(phases))]
		for range 1 + rnd.IntN(6*chunkLen) {
			done += w.step(p)
		}
		w.check()
		if rnd.IntN(4) == 0 {
			done += w.empty()
			for range chunkLen { // few items, so that it is empty again and again
				w.put()
				if rnd.IntN(3) == 0 {
					w.put()
				}
				done += w.empty()
			}
		}
	}
	var emptied [chunkLen]bool
	takenOut := 0
	for _, w := range worlds {
		for i := range emptied {
			emptied[i] = emptied[i] || w.emptied[i]
		}
		takenOut += w.takenOut
	}
	if i := slices.Index(emptied[:], false); i >= 0 || takenOut < 30 {
		t.Errorf("too few cases: the fifo was never empty at offset %d (-1 is none), inner chunks %d times", i, takenOut)
	}
}

// The head moves from any offset in a chunk to any in another, over chunks that were
// released and over chunks that only have no item.
func TestModel_FIFOHeadCrossesAtEveryOffset(t *testing.T) {
	rnd := seeded.Rand(t)
	var spare spares
	for _, over := range []int{0, 2} { // chunks between the two
		for offset := range chunkLen {
			for _, ends := range [][2]int{{offset, rnd.IntN(chunkLen)}, {rnd.IntN(chunkLen), offset}} {
				w := &fifoWorld{t: t, rnd: rnd, spare: &spare}
				from, to := ends[0], (over+1)*chunkLen+ends[1]
				n := to + 1 + rnd.IntN(2*chunkLen) // the last chunk is the one that is gone to, or another
				for range n {
					w.put()
				}
				var leave []uint64
				for _, it := range w.want {
					if place := int(it.place); place != from && place != to && place != n-1 {
						leave = append(leave, it.place)
					}
				}
				if offset%2 == 0 {
					rnd.Shuffle(len(leave), func(i, j int) { leave[i], leave[j] = leave[j], leave[i] })
				}
				for _, place := range leave {
					w.remove(slices.IndexFunc(w.want, func(it queued) bool { return it.place == place }))
				}
				w.check()
				w.drop()
				w.check()
				if w.f.head != uint64(to) {
					t.Fatalf("from %d the head goes to %d, want %d", from, w.f.head, to)
				}
				w.put()
				w.check()
				w.empty()
			}
		}
	}
}

// fill puts n items and returns their places and chunks.
func fill(f *fifo, spare *spares, n int) (places []uint64, chunks []weak.Pointer[chunk]) {
	for i := range n {
		places = append(places, f.put(item{job: ofFIFO, since: int64(i)}, spare))
		if i%chunkLen == 0 {
			chunks = append(chunks, weak.Make(f.chunks[len(f.chunks)-1]))
		}
	}
	return places, chunks
}

// alive counts the chunks that survive garbage collection. It needs two collections: the
// second takes what was spare at the first.
func alive(chunks []weak.Pointer[chunk]) (n int) {
	runtime.GC()
	runtime.GC()
	for _, c := range chunks {
		if c.Value() != nil {
			n++
		}
	}
	return n
}

// A million items that have left keep no more than one chunk with room.
func TestA2_FIFOGivesItsMemoryBack(t *testing.T) {
	const n = 1_000_000
	rnd := seeded.Rand(t)
	for _, c := range []struct {
		name  string
		leave func(f *fifo, spare *spares, places []uint64)
	}{
		{"dropped", func(f *fifo, spare *spares, places []uint64) {
			for range places {
				f.drop(spare)
			}
		}},
		{"removed in random order", func(f *fifo, spare *spares, places []uint64) {
			rnd.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
			for _, place := range places {
				f.remove(place, spare)
			}
		}},
		{"removed from the end", func(f *fifo, spare *spares, places []uint64) {
			for _, place := range slices.Backward(places) {
				f.remove(place, spare)
			}
		}},
	} {
		for _, more := range []int{0, chunkLen - n%chunkLen} { // the last chunk has room, or is full
			t.Run(c.name, func(t *testing.T) {
				var f fifo
				var spare spares
				places, chunks := fill(&f, &spare, n+more)
				if got := alive(chunks); got != len(chunks) {
					t.Fatalf("%d chunks of %d are there while they have items", got, len(chunks))
				}
				c.leave(&f, &spare, places)
				if got := alive(chunks); got > 1 {
					t.Errorf("%d chunks are left of %d, want at most 1", got, len(chunks))
				}
				if f.n != 0 || len(f.chunks) > 1 {
					t.Errorf("%d items are left, %d chunks", f.n, len(f.chunks))
				}
				runtime.KeepAlive(&f)
				runtime.KeepAlive(&spare)
			})
		}
	}
}

// An item that stays keeps its own chunk and no other, at whatever offset.
func TestA2_FIFOItemKeepsItsChunkAlone(t *testing.T) {
	const chunks = 1000
	rnd := seeded.Rand(t)
	for _, every := range []int{1, 2, 7, chunks - 1} {
		var f fifo
		var spare spares
		places, all := fill(&f, &spare, chunks*chunkLen)
		var stays, leaves []uint64
		for i := range chunks {
			stay := -1
			if i%every == 0 {
				stay = rnd.IntN(chunkLen)
			}
			for j, place := range places[i*chunkLen : (i+1)*chunkLen] {
				if j == stay {
					stays = append(stays, place)
				} else {
					leaves = append(leaves, place)
				}
			}
		}
		rnd.Shuffle(len(leaves), func(i, j int) { leaves[i], leaves[j] = leaves[j], leaves[i] })
		for _, place := range leaves {
			f.remove(place, &spare)
		}
		// The last one has room, or would have if it were not full, and is put away by the next item.
		if got, most := alive(all), len(stays)+1; got > most {
			t.Errorf("%d items, one in %d chunks, keep %d chunks, want at most %d", len(stays), every, got, most)
		}
		for i, place := range stays {
			if it := f.at(place); it == nil || uint64(it.since) != place || f.ahead(place) != i {
				t.Fatalf("at %d is %v, want the item with %d ahead", place, it, i)
			}
		}
		for _, place := range stays {
			if f.head != place {
				t.Fatalf("the head is at %d, want %d", f.head, place)
			}
			f.drop(&spare)
		}
		if got := alive(all); got > 1 {
			t.Errorf("%d chunks are left, want at most 1", got)
		}
		runtime.KeepAlive(&spare)
	}
}
