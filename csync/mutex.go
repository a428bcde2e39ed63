package csync

import "context"

// Mutex is a mutual exclusion lock whose Lock takes a context. Unlock hands it
// to the goroutine that has waited longest; no other can take it in between, so a goroutine
// that waits behind n others gets the lock after exactly n others have. The price is
// that a contended lock passes from goroutine to goroutine, where a running goroutine
// can get a [sync.Mutex] many times in a row.
//
// It is not recursive, and not tied to a goroutine: one may lock it and another
// unlock it. The zero value is an unlocked Mutex. All methods may be called from
// many goroutines.
type Mutex struct {
	permits permits
}

// Lock locks m, and waits until it can. If ctx ends first, or has ended before the call,
// it returns [context.Cause] of ctx and does not lock m. If m was handed over before ctx
// ended, it is locked, and Lock returns nil.
func (m *Mutex) Lock(ctx context.Context) error {
	if ctx.Err() == nil && m.permits.state.CompareAndSwap(0, 1) {
		return nil
	}
	return m.permits.acquire(ctx, 1, 1)
}

// TryLock locks m if it is free, and reports whether it did. It never blocks.
func (m *Mutex) TryLock() bool { return m.permits.try(1, 1) }

// Unlock unlocks m, or hands it to the next waiter. It panics if m is not
// locked.
func (m *Mutex) Unlock() {
	if m.permits.state.CompareAndSwap(1, 0) {
		return
	}
	if !m.permits.release(1, 1) {
		panic("csync: Unlock of an unlocked Mutex")
	}
}

// With calls fn while m is locked. The error is that of Lock, in which case fn
// was not called, or that of fn. m is unlocked when fn returns, panics or calls
// [runtime.Goexit].
func (m *Mutex) With(ctx context.Context, fn func() error) error {
	if err := m.Lock(ctx); err != nil {
		return err
	}
	defer m.Unlock()
	return fn()
}
