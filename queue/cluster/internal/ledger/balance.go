package ledger

import (
	"cmp"
	"slices"
	"time"
)

const (
	// turn is how long a member keeps a permit that it shares with others by turns: several
	// round trips between hosts.
	turn = 10 * time.Millisecond
	// starving is how long a member without a permit waits until it goes first, whatever its
	// tier.
	starving = time.Second
)

// max is the number of permits: the smallest that an account has. So it does not depend on
// the order in which hosts start, and a lower one takes effect with the first host.
func (lim *limit) max() int {
	least := 0
	for _, m := range lim.members {
		if least == 0 || m.claim.Max < least {
			least = m.claim.Max
		}
	}
	return least
}

// held is how many permits are out.
func (lim *limit) held() (n int) {
	for _, m := range lim.members {
		n += m.held()
	}
	return n
}

// starves reports whether a member goes before all others that do not starve.
func (m *member) starves(now time.Time) bool {
	return m.held() == 0 && !m.waits.IsZero() && now.Sub(m.waits) >= starving
}

// waiting returns the members that need permits, those that go first at the front: by tier,
// then by order of arrival.
func (lim *limit) waiting(now time.Time) (all []*member) {
	for _, m := range lim.members {
		if m.need() > 0 {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b *member) int {
		aStarves, bStarves := a.starves(now), b.starves(now)
		switch {
		case aStarves != bStarves && aStarves:
			return -1
		case aStarves != bStarves:
			return 1
		case aStarves:
			return a.waits.Compare(b.waits)
		}
		return cmp.Or(cmp.Compare(b.claim.Tier, a.claim.Tier),
			cmp.Compare(a.tickets[a.claim.Tier], b.tickets[b.claim.Tier]))
	})
	return all
}

// balance grants the free permits, and decides which others have to be returned.
func (l *Ledger) balance(now time.Time, lim *limit) {
	most := lim.max()
	if now.Before(l.ready) {
		most = min(most, lim.claimed)
	}
	for free := most - lim.held(); free > 0; {
		round := lim.waiting(now)
		if len(round) == 0 {
			break
		}
		// Only the first permit of a round is for the tier that was claimed: how many of the
		// others wait in a lower one is not known.
		for _, m := range round[:min(len(round), free)] {
			n := 1
			if len(round) == 1 {
				n = min(free, m.need())
			}
			l.grant(now, m, n)
			free -= n
		}
	}
	for _, m := range lim.members {
		if m.claim.Spare && most > lim.held() {
			l.grant(now, m, 1)
		}
		m.claim.Spare = false // it asks again
	}
	l.recall(now, lim)
	if now.Before(l.ready) {
		lim.at(l.ready)
	}
}

// grant grants n permits.
func (l *Ledger) grant(now time.Time, m *member, n int) {
	m.granted += uint64(n) //nolint:gosec // positive
	m.served = now
	l.order(m)
	if m.need() == 0 {
		m.tickets, m.waits = [tiers]uint64{}, time.Time{}
		return
	}
	l.ticket++
	m.tickets[m.claim.Tier], m.waits = l.ticket, now
}

// recall decides how many permits each member may keep, from the state alone. While a member
// waits, the others return the permits that they do not use. Of those in use, a member
// returns some if it has more than its share: if a higher tier waits, or the same tier on a
// node that has fewer. A member that could use its permits itself returns them only as far
// as others wait for them.
func (l *Ledger) recall(now time.Time, lim *limit) {
	lim.next = time.Time{}
	waiting := lim.waiting(now)
	r := recall{now: now, lim: lim, credit: map[*member]int{}, debit: map[*member]int{}}
	for _, m := range lim.members {
		if m.held() > 0 {
			r.holders = append(r.holders, m)
		}
	}
	over := lim.held() - lim.max()
	r.reduce(over)
	if len(waiting) > 0 {
		r.idle()
	}
	for first, moved := true, over <= 0; moved; first = false {
		moved = false
		for _, m := range waiting {
			if r.credit[m] < m.need() && r.serve(m, first) {
				moved = true
			}
		}
	}
	for _, m := range lim.members {
		keep := All
		if n := r.debit[m]; n > 0 || len(waiting) > 0 && m.need() == 0 {
			keep = max(0, m.held()-n)
		}
		if keep != m.keep {
			m.keep = keep
			l.order(m)
		}
	}
	for _, m := range waiting {
		if m.held() == 0 && !m.starves(now) {
			lim.at(m.waits.Add(starving))
		}
	}
}

// at makes Advance decide again at a time, or before.
func (lim *limit) at(t time.Time) {
	if lim.next.IsZero() || t.Before(lim.next) {
		lim.next = t
	}
}

// recall is the permits that change hands, as far as it is decided.
type recall struct {
	now           time.Time
	lim           *limit
	holders       []*member // that have permits: of very many members that wait, few do
	credit, debit map[*member]int
	coming        int // permits that are being returned without being recalled from a user
}

// reduce takes n permits from the members that have the most, if Max was lowered.
func (r *recall) reduce(n int) {
	for ; n > 0; n-- {
		most := slices.MaxFunc(r.lim.members, func(a, b *member) int { return cmp.Compare(r.left(a), r.left(b)) })
		r.debit[most]++
	}
}

// idle makes the members that do not wait return all their permits, as soon as they are not
// in use. One that does not know yet what it was granted is about to use that.
func (r *recall) idle() {
	for _, m := range r.holders {
		if n := r.left(m); n > 0 && m.need() == 0 && m.coming() == 0 {
			r.coming += min(n, max(0, m.held()-m.claim.Used))
			r.debit[m] += n
		}
	}
}

// left is what a member still has when it has returned what was decided. What is on its way
// to the member is not recalled before it can be used.
func (r *recall) left(m *member) int { return m.held() - m.coming() - r.debit[m] }

// serve finds one more permit for a member, and reports whether there is one. Tiers count
// for the first one only.
func (r *recall) serve(m *member, first bool) bool {
	if r.coming > 0 {
		r.coming--
		r.credit[m]++
		return true
	}
	var from *member
	for _, o := range r.holders {
		if o == m || r.left(o) <= 0 || !r.yields(o, m, first) {
			continue
		}
		if from == nil || r.before(o, from) {
			from = o
		}
	}
	if from == nil {
		return false
	}
	r.credit[m]++
	r.debit[from]++
	return true
}

// yields reports whether o returns a permit for m.
func (r *recall) yields(o, m *member, first bool) bool {
	switch {
	case first && m.starves(r.now):
		return true
	case first && m.claim.Tier > o.claim.Tier:
		return true
	case m.claim.Tier != o.claim.Tier:
		return false
	}
	switch more := r.left(o) - m.held() - r.credit[m]; {
	case more > 1:
		return true
	case more < 1:
		return false
	}
	if end := o.served.Add(turn); end.After(r.now) {
		r.lim.at(end)
		return false
	}
	return true
}

// before reports whether a yields before b: it has a lower tier, or more permits, or got its
// last one earlier.
func (r *recall) before(a, b *member) bool {
	return cmp.Or(cmp.Compare(a.claim.Tier, b.claim.Tier), cmp.Compare(r.left(b), r.left(a)),
		a.served.Compare(b.served)) < 0
}
