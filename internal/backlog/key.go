package backlog

import (
	"maps"

	"github.com/stintgo/stint/internal/shrink"
)

// key is what the backlog knows of one key. It exists while something of the
// key runs or waits, while the key is blocked, and while its fair turn has not
// come round again: idle keys cost no memory.
type key[T any] struct {
	name    string
	flows   *flow[T] // a list, as few keys have entries in more than one tier
	own     flow[T]  // one of them, so that a key of one tier is one object; free if its key is nil
	running int32
	queued  int32
	blocked Cause
	aside   bool // its lines are out of the order: it is blocked or at its limit
}

// keyRecord returns the record of a key, made if there is none.
func (b *Backlog[T]) keyRecord(name string) *key[T] {
	k := b.keys[name]
	if k == nil {
		k = &key[T]{name: name}
		b.keys[name] = k
	}
	return k
}

// flow returns the flow of a key in a tier, made if there is none; a new one is
// of a class.
func (b *Backlog[T]) flow(name string, tier int, c *class[T]) *flow[T] {
	k := b.keyRecord(name)
	for f := k.flows; f != nil; f = f.next {
		if f.own.tier == int8(tier) {
			return f
		}
	}
	f := &k.own
	if f.key != nil {
		f = new(flow[T])
	}
	f.init(k, int8(tier), c, b.shareOf(name))
	f.next, k.flows = k.flows, f
	return f
}

func (b *Backlog[T]) shareOf(name string) uint32 {
	if b.share == nil {
		return 1
	}
	return uint32(min(max(b.share(name), 1), unit))
}

// drop forgets a flow.
func (k *key[T]) drop(f *flow[T]) {
	at := &k.flows
	for *at != f {
		at = &(*at).next
	}
	*at = f.next
	*f = flow[T]{}
}

// limitOf returns the most entries of a key that run at once, 0 for no limit.
func (b *Backlog[T]) limitOf(name string) int {
	if n, ok := b.limits[name]; ok {
		return n
	}
	return b.perKey
}

func (b *Backlog[T]) atLimit(k *key[T]) bool {
	if k == nil {
		return false
	}
	limit := b.limitOf(k.name)
	return limit > 0 && int(k.running) >= limit
}

// AtLimit reports whether as many entries of a key run as may.
func (b *Backlog[T]) AtLimit(name string) bool { return b.atLimit(b.keys[name]) }

// LimitOf returns the most entries of a key that run at once, 0 for no limit.
func (b *Backlog[T]) LimitOf(name string) int { return b.limitOf(name) }

// LimitsKeys reports whether any key has a limit.
func (b *Backlog[T]) LimitsKeys() bool { return b.perKey > 0 || len(b.limits) > 0 }

// review sets a key aside or readmits it, as its limit and Block have it now.
func (b *Backlog[T]) review(k *key[T]) {
	aside := k.blocked != 0 || b.atLimit(k)
	if aside == k.aside {
		return
	}
	k.aside = aside
	if aside {
		b.held += int(k.queued)
	} else {
		b.held -= int(k.queued)
	}
	for f := k.flows; f != nil; f = f.next {
		if aside {
			f.each(b.setAside)
		} else {
			// The key does not get back the time that it was set aside: its
			// entries count as queued no earlier than now.
			f.floor = max(f.floor, b.tiers[f.own.tier].virtual)
			f.each(b.readmit)
		}
	}
}

// setAside takes a line whose key may start nothing out of its order, so that
// nothing ever scans over it.
func (b *Backlog[T]) setAside(l *line[T]) {
	if l.n > 0 {
		b.leave(l)
	}
}

func (b *Backlog[T]) readmit(l *line[T]) {
	if l.n > 0 {
		b.enter(l)
	}
}

// Finish says that a running entry of a key is done, so the key may start
// another. Entries without a key need no call. If nothing of the key runs, it
// does nothing.
func (b *Backlog[T]) Finish(name string) {
	if name == "" {
		return
	}
	k := b.keys[name]
	if k == nil || k.running == 0 {
		return
	}
	k.running--
	b.review(k)
	b.forget(k)
}

// forget drops a key's record if nothing needs it.
func (b *Backlog[T]) forget(k *key[T]) {
	if k.running == 0 && k.flows == nil && k.blocked == 0 {
		shrink.Delete(&b.keys, &b.keysPeak, k.name)
	}
}

// expire forgets the flows of a tier that are empty and that virtual time has
// passed.
func (b *Backlog[T]) expire(t *tier[T]) {
	if t.queued == 0 { // the tier starts afresh: see emptied
		for _, l := range t.rest {
			b.forgetFlow(l.flow)
		}
		t.rest = shrink.Clear(t.rest)
		return
	}
	for f := t.passed(); f != nil; f = t.passed() {
		b.forgetFlow(f)
	}
}

// forgetFlow forgets a flow that is empty, and its key if nothing else is left of
// that.
func (b *Backlog[T]) forgetFlow(f *flow[T]) {
	k := f.key
	k.drop(f)
	b.forget(k)
}

// Running is the number of running entries of a key.
func (b *Backlog[T]) Running(name string) int {
	if k := b.keys[name]; k != nil {
		return int(k.running)
	}
	return 0
}

// Keys is the number of keys that the backlog remembers.
func (b *Backlog[T]) Keys() int { return len(b.keys) }

// PerKey returns the limit of every key that has none of its own, 0 for none.
func (b *Backlog[T]) PerKey() int { return b.perKey }

// SetPerKey changes the limit of every key that has none of its own, 0 for none.
// The cost is linear in the number of keys.
func (b *Backlog[T]) SetPerKey(n int) { b.SetKeyLimits(n, b.limits) }

// SetKeyLimits changes the limit of every key, 0 for none, and those of single keys,
// which have these instead. The map must not be changed later. The cost is linear
// in the number of keys, or in that of limits if nothing changes.
func (b *Backlog[T]) SetKeyLimits(n int, limits map[string]int) {
	if n == b.perKey && maps.Equal(limits, b.limits) {
		return
	}
	b.perKey, b.limits = n, limits
	for _, k := range b.keys {
		b.review(k)
	}
}

// Cause is a reason for which a key is blocked, a bit of the caller's choice.
type Cause uint8

// Block sets a key aside until Unblock, whatever its limit: none of its entries
// starts, and arrivals queue. It is for reasons that the backlog does not know,
// such as a rate. A key stays blocked as long as there is a cause; blocking it again
// for the same cause changes nothing. Entries without a key cannot be blocked, so
// for the empty key it does nothing.
func (b *Backlog[T]) Block(name string, cause Cause) {
	if name == "" {
		return
	}
	k := b.keyRecord(name)
	k.blocked |= cause
	b.review(k)
}

// Unblock ends what Block began for a cause. The key does not get back the time that
// it was set aside.
func (b *Backlog[T]) Unblock(name string, cause Cause) {
	k := b.keys[name]
	if k == nil {
		return
	}
	k.blocked &^= cause
	b.review(k)
	b.forget(k)
}

// Blocked returns the causes for which a key is blocked, 0 if it is not.
func (b *Backlog[T]) Blocked(name string) Cause {
	if k := b.keys[name]; k != nil {
		return k.blocked
	}
	return 0
}

// EachQueued calls fn for each key of which entries are queued, in no order.
func (b *Backlog[T]) EachQueued(fn func(key string)) {
	for name, k := range b.keys {
		if k.queued > 0 {
			fn(name)
		}
	}
}

// HeldByKey is the number of queued entries whose key is at its limit or
// blocked.
func (b *Backlog[T]) HeldByKey() int { return b.held }

// KeyHasRoom reports whether another entry of a key may run: it is neither at
// its limit nor blocked.
func (b *Backlog[T]) KeyHasRoom(name string) bool {
	if name == "" {
		return true
	}
	k := b.keys[name]
	return k == nil || !k.aside
}
