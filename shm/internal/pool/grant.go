package pool

// place grants the slot s to the best waiting participant, until the slot is taken or
// the mask is empty. It is called after each change that frees a slot.
func (p *Pool) place(l *limit, s int) { p.offer(l, s, allParticipants, (*queue).best) }

// order returns the first participant of a mask, and its want.
type order func(q *queue, mask uint64) (i int, want uint64)

// offer is place restricted to the participants in of, with the given order.
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
		i, _ := first(&l.queue, mask)
		p.grant(l, s, seen, i)
	}
}

// grant gives the free slot s to the participant i, unless the slot or the mask has
// changed meanwhile.
//
// It writes the slot first and the mask second, so that no participant ever has to put
// another one back into the mask. i leaves the mask before it looks for grants that it no
// longer wants, so that one of the two always sees the other. If i dies meanwhile, the
// slot is recovered like all slots of i.
func (p *Pool) grant(l *limit, s int, seen uint64, i int) {
	state := p.state(i).load()
	slot := owned(i, generationOf(state)) | granted | seen
	if !l.slot(s).cas(seen, slot) {
		return
	}
	waited := l.mask.clear(1 << i)
	if !waited || !isLive(state) {
		l.slot(s).cas(slot, seen)
	}
	if waited {
		p.ring(i) // even without a grant: i is out of the mask and has to check for itself
	}
}
