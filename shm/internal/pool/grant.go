package pool

// place grants the slot s to those who wait, the best first, until it is taken or
// nobody waits. Whoever has freed a slot places it.
func (p *Pool) place(l *limit, s int) { p.offer(l, s, everybody, (*limit).best) }

// order is one among those of a mask, and answers who is first.
type order func(l *limit, mask uint64) (i int, want uint64)

// offer is place for some participants, and with another order among them.
func (p *Pool) offer(l *limit, s int, of uint64, first order) {
	for {
		mask := l.mask.load() & of
		if mask == 0 {
			return
		}
		seen := l.slot(s).load()
		if !isFree(seen) {
			return
		}
		i, _ := first(l, mask)
		p.grant(l, s, seen, i)
	}
}

// grant gives the free slot s to the participant i, unless another was faster
// with either.
//
// The slot comes first and the mask second, so that nobody ever has to be put
// back into the mask by another, and so that i, which leaves the mask before it
// looks for grants that it no longer wants, and whoever grants do not miss each
// other. If i dies meanwhile the slot comes back like all that it has.
func (p *Pool) grant(l *limit, s int, seen uint64, i int) {
	state := p.state(i).load()
	slot := owned(i, eraOf(state)) | granted | seen
	if !l.slot(s).cas(seen, slot) {
		return
	}
	waited := l.mask.clear(1 << i)
	if !waited || !isLive(state) {
		l.slot(s).cas(slot, seen)
	}
	if waited {
		p.ring(i) // also if it got nothing: out of the mask, it has to look for itself
	}
}
