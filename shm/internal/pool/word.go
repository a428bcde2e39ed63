package pool

import "sync/atomic"

// word is 64 bits that all participants share. All accesses go through these methods;
// they are atomic and sequentially consistent.
type word uint64

// step is called before each access. It is nil except in the search of
// interleavings, where it runs another participant, or kills this one.
var step func(w *word) //nolint:gochecknoglobals // set by tests only

func (w *word) load() uint64 {
	if step != nil {
		step(w)
	}
	return atomic.LoadUint64((*uint64)(w))
}

func (w *word) store(value uint64) {
	if step != nil {
		step(w)
	}
	atomic.StoreUint64((*uint64)(w), value)
}

func (w *word) increment() {
	if step != nil {
		step(w)
	}
	atomic.AddUint64((*uint64)(w), 1)
}

func (w *word) cas(from, to uint64) bool {
	if step != nil {
		step(w)
	}
	return atomic.CompareAndSwapUint64((*uint64)(w), from, to)
}

func (w *word) set(bits uint64) {
	if step != nil {
		step(w)
	}
	atomic.OrUint64((*uint64)(w), bits)
}

// clear clears bits, and reports whether one of them was set.
func (w *word) clear(bits uint64) bool {
	if step != nil {
		step(w)
	}
	return atomic.AndUint64((*uint64)(w), ^bits)&bits != 0
}
