package pool

// handOut grants free slots to those who wait, the best first, until there is
// none of one or of the other. It looks for slots from s on.
func (p *Pool) handOut(l *limit, s int) {
	for {
		mask := l.mask.load()
		if mask == 0 {
			return
		}
		at, seen, ok := l.free(s)
		if !ok {
			return
		}
		i, _ := l.best(mask)
		p.grant(l, at, seen, i)
	}
}

// free finds a free slot, and says what its word was.
func (l *limit) free(from int) (s int, seen uint64, ok bool) {
	for range l.count {
		if seen := l.slot(from).load(); isFree(seen) {
			return from, seen, true
		}
		from = l.next(from)
	}
	return 0, 0, false
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
