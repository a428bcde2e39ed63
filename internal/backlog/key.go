package backlog

// key is what the backlog knows of one key. It exists while something of the
// key runs or waits, or while its fair turn has not come round again: idle keys
// cost no memory.
type key[T any] struct {
	name    string
	running int
	lines   [Tiers]*line[T]
	live    int // lines that are not nil
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

// keyLine returns the line of a key in a tier, made if there is none.
func (b *Backlog[T]) keyLine(name string, tier int) *line[T] {
	k := b.keyRecord(name)
	if k.lines[tier] == nil {
		share := b.shareOf(name)
		k.lines[tier] = &line[T]{key: k, tier: int8(tier), pos: nowhere, share: share, cost: unit / share}
		k.live++
	}
	return k.lines[tier]
}

func (b *Backlog[T]) shareOf(name string) uint64 {
	if b.share == nil {
		return 1
	}
	return uint64(min(max(b.share(name), 1), unit))
}

func (b *Backlog[T]) atLimit(k *key[T]) bool {
	return k != nil && b.perKey > 0 && k.running >= b.perKey
}

// setAside takes the lines of a key that is at its limit out of the order, so
// that nothing ever scans over them.
func (b *Backlog[T]) setAside(k *key[T]) {
	for _, l := range k.lines {
		if l != nil && l.n > 0 && l.pos != nowhere {
			b.tiers[l.tier].leave(l)
			b.mark(l.tier)
		}
	}
}

// readmit puts the lines of a key that has room again back into the order.
func (b *Backlog[T]) readmit(k *key[T]) {
	for _, l := range k.lines {
		if l != nil && l.n > 0 && l.pos == nowhere {
			b.enter(l)
		}
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
	if !b.atLimit(k) {
		b.readmit(k)
	}
	b.forget(k)
}

// forget drops a key's record if nothing needs it.
func (b *Backlog[T]) forget(k *key[T]) {
	if k.running == 0 && k.live == 0 {
		delete(b.keys, k.name)
	}
}

// expire forgets the lines at rest in t that virtual time has passed. A line
// must be remembered until then, or a key that queues a single entry at a time
// would start afresh each time and starve the others. An empty tier starts
// afresh for all.
func (b *Backlog[T]) expire(t *tier[T]) {
	for len(t.rest) > 0 && (t.queued == 0 || t.rest[0].tag <= t.virtual) {
		l := t.rest[0]
		t.rest.remove(l)
		l.finish = 0
		if l.key != nil {
			l.key.lines[l.tier] = nil
			l.key.live--
			b.forget(l.key)
		}
	}
}

// Running is the number of running entries of a key.
func (b *Backlog[T]) Running(name string) int {
	if k := b.keys[name]; k != nil {
		return k.running
	}
	return 0
}

// Keys is the number of keys that the backlog remembers.
func (b *Backlog[T]) Keys() int { return len(b.keys) }

// PerKey returns the limit of every key, 0 for none.
func (b *Backlog[T]) PerKey() int { return b.perKey }

// SetPerKey changes the limit of every key, 0 for none. The cost is linear in
// the number of keys.
func (b *Backlog[T]) SetPerKey(n int) {
	b.perKey = n
	for _, k := range b.keys {
		if b.atLimit(k) {
			b.setAside(k)
		} else {
			b.readmit(k)
		}
	}
}

// KeyHasRoom reports whether another entry of a key may run.
func (b *Backlog[T]) KeyHasRoom(name string) bool {
	return name == "" || !b.atLimit(b.keys[name])
}
