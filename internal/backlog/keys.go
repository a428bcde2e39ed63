package backlog

import (
	"maps"
	"slices"

	"github.com/stintgo/stint/internal/shrink"
)

// Keys is the keys of the entries of a [Backlog]: how many entries of each run and wait, their
// limits, and those that are blocked. The empty key stands for the entries without one: to them
// no limit applies, they are never blocked and are not counted.
type Keys[T any] struct {
	order  *order[T]
	perKey int
	limits map[string]int // of single keys, which have these instead of shared and perKey
	shared map[string]int // of single keys, which have these instead of perKey; see Config.SharedLimits
	share  func(key string) int
	turned func(key string, room bool) // or nil
	known  map[string]*key[T]          // those with a flow or a running entry, and blocked ones
	peak   int                         // as shrink.Delete has it
	held   int                         // queued entries whose key is set aside
}

// Admit counts an arrival that [Backlog.Admits] let through, so that its key is charged.
// It does not count as a turn: where no entry waits, the arrival takes the place of none.
func (s *Keys[T]) Admit(name string) {
	if name == "" {
		return
	}
	k := s.record(name)
	k.running++
	s.review(k)
}

// Finish says that a running entry of a key is done, so the key may start
// another. If nothing of the key runs, it does nothing.
func (s *Keys[T]) Finish(name string) {
	if name == "" {
		return
	}
	k := s.known[name]
	if k == nil || k.running == 0 {
		return
	}
	k.running--
	s.review(k)
	s.forget(k)
}

// Cause is a reason for which a key is blocked, a bit of the caller's choice.
type Cause uint8

// Block sets a key aside until Unblock, whatever its limit: none of its entries
// starts, and arrivals queue. It is for reasons that the backlog does not know,
// such as a rate. A key stays blocked as long as there is a cause; blocking it again
// for the same cause changes nothing.
func (s *Keys[T]) Block(name string, cause Cause) {
	if name == "" {
		return
	}
	k := s.record(name)
	k.blocked |= cause
	s.review(k)
}

// Unblock ends what Block began for a cause. The key does not get back the time that
// it was set aside.
func (s *Keys[T]) Unblock(name string, cause Cause) {
	k := s.known[name]
	if k == nil {
		return
	}
	k.blocked &^= cause
	s.review(k)
	s.forget(k)
}

// Blocked returns the causes for which a key is blocked, 0 if it is not.
func (s *Keys[T]) Blocked(name string) Cause {
	if k := s.known[name]; k != nil {
		return k.blocked
	}
	return 0
}

// SetLimits changes the limit of every key, 0 for none, and those of single keys,
// which have these instead. After a change of the map the caller calls Review. The cost is
// linear in the number of keys, or in that of limits if nothing changes.
func (s *Keys[T]) SetLimits(perKey int, limits map[string]int) {
	same := perKey == s.perKey && maps.Equal(limits, s.limits)
	if s.perKey, s.limits = perKey, limits; same {
		return
	}
	for _, k := range s.known {
		s.review(k)
	}
}

// Review applies the limit of a key after a change of the map of SetLimits, or of
// [Config.SharedLimits].
func (s *Keys[T]) Review(name string) {
	if k := s.known[name]; k != nil {
		s.review(k)
	}
}

// SetPerKey changes the limit of every key that has none of its own, 0 for none.
// The cost is linear in the number of keys.
func (s *Keys[T]) SetPerKey(n int) { s.SetLimits(n, s.limits) }

// PerKey returns the limit of every key that has none of its own, 0 for none.
func (s *Keys[T]) PerKey() int { return s.perKey }

// Limit returns the most entries of a key that run at once, 0 for no limit.
func (s *Keys[T]) Limit(name string) int {
	if n, ok := s.limits[name]; ok {
		return n
	}
	if n, ok := s.shared[name]; ok {
		return n
	}
	return s.perKey
}

// Limited reports whether any key has a limit.
func (s *Keys[T]) Limited() bool { return s.perKey > 0 || len(s.limits)+len(s.shared) > 0 }

// AtLimit reports whether as many entries of a key run as may.
func (s *Keys[T]) AtLimit(name string) bool { return s.atLimit(s.known[name]) }

func (s *Keys[T]) atLimit(k *key[T]) bool {
	if k == nil {
		return false
	}
	limit := s.Limit(k.name)
	return limit > 0 && int(k.running) >= limit
}

// HasRoom reports whether another entry of a key may run: it is neither at
// its limit nor blocked.
func (s *Keys[T]) HasRoom(name string) bool {
	if name == "" {
		return true
	}
	k := s.known[name]
	return k == nil || !k.aside
}

// Running is the number of running entries of a key.
func (s *Keys[T]) Running(name string) int {
	if k := s.known[name]; k != nil {
		return int(k.running)
	}
	return 0
}

// Queued is the number of queued entries of a key.
func (s *Keys[T]) Queued(name string) int {
	if k := s.known[name]; k != nil {
		return int(k.queued)
	}
	return 0
}

// QueuedIn reports whether entries of a key and of any of these classes are queued.
func (s *Keys[T]) QueuedIn(name string, classes []int) (queued bool) {
	k := s.known[name]
	if k == nil {
		return false
	}
	for f := k.flows; f != nil; f = f.next {
		f.each(func(q *queue[T]) {
			queued = queued || q.n > 0 && slices.Contains(classes, q.class.number)
		})
	}
	return queued
}

// EachQueued calls fn for each key of which entries are queued, in no order.
func (s *Keys[T]) EachQueued(fn func(key string)) {
	for name, k := range s.known {
		if k.queued > 0 {
			fn(name)
		}
	}
}

// Held is the number of queued entries whose key is at its limit or blocked.
func (s *Keys[T]) Held() int { return s.held }

// Len is the number of keys that are remembered.
func (s *Keys[T]) Len() int { return len(s.known) }

// record returns the record of a key, made if there is none.
func (s *Keys[T]) record(name string) *key[T] {
	k := s.known[name]
	if k == nil {
		k = &key[T]{name: name}
		s.known[name] = k
	}
	return k
}

// flow returns the flow of a key in a tier, made if there is none; a new one is
// of a class.
func (s *Keys[T]) flow(name string, tier int, c *class[T]) *flow[T] {
	k := s.record(name)
	if f := k.flow(tier); f != nil {
		return f
	}
	return k.add(tier, c, s.shareOf(name))
}

func (s *Keys[T]) shareOf(name string) uint32 {
	if s.share == nil {
		return 1
	}
	return uint32(min(max(s.share(name), 1), unit))
}

// count adds n to the number of queued entries of a key, and reports whether the key is set aside.
func (s *Keys[T]) count(k *key[T], n int) (aside bool) {
	if k == nil {
		return false
	}
	k.queued += int32(n)
	if k.aside {
		s.held += n
	}
	return k.aside
}

// review sets a key aside or readmits it, as its limit and Block have it now.
func (s *Keys[T]) review(k *key[T]) {
	aside := k.blocked != 0 || s.atLimit(k)
	if aside == k.aside {
		return
	}
	k.aside = aside
	if aside {
		s.held += int(k.queued)
	} else {
		s.held -= int(k.queued)
	}
	for f := k.flows; f != nil; f = f.next {
		if aside {
			s.order.setAside(f)
		} else {
			s.order.readmit(f)
		}
	}
	if s.turned != nil {
		s.turned(k.name, !aside)
	}
}

// expire forgets the flows of a tier that are empty and that virtual time has
// passed.
func (s *Keys[T]) expire(t *tier[T]) {
	if t.queued == 0 { // the tier starts afresh: see emptied
		for _, q := range t.rest {
			s.forgetFlow(q.flow)
		}
		t.rest = shrink.Clear(t.rest)
		return
	}
	for f := t.passed(); f != nil; f = t.passed() {
		s.forgetFlow(f)
	}
}

// forgetFlow forgets a flow that is empty, and its key if nothing else is left of
// that.
func (s *Keys[T]) forgetFlow(f *flow[T]) {
	k := f.key
	k.drop(f)
	s.forget(k)
}

// forget drops a key's record if nothing needs it.
func (s *Keys[T]) forget(k *key[T]) {
	if k.running == 0 && k.flows == nil && k.blocked == 0 {
		shrink.Delete(&s.known, &s.peak, k.name)
	}
}
