package pool

import "sync/atomic"

// word is 64 bits that all participants share. Every access is atomic, in one
// order that all agree on, and goes through these methods.
type word uint64

// step is called before each access. It is nil but in the search of
// interleavings, where it lets another participant go on, or lets this one die.
var step func(w *word) //nolint:gochecknoglobals // set by tests alone

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

// clear takes bits away, and reports whether one of them was set.
func (w *word) clear(bits uint64) bool {
	if step != nil {
		step(w)
	}
	return atomic.AndUint64((*uint64)(w), ^bits)&bits != 0
}
