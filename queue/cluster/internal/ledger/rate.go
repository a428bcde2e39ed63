package ledger

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// rate is a token bucket that accounts of all nodes share. What nodes have leased and not
// spent counts as in the bucket, which holds the less: so in any time no more is spent than
// the rate allows, and one burst. The bucket of a new leader is empty.
//
// It is not a bucket of internal/bucket: there, entries queue at the bucket, and what they are granted is
// spent. Here nodes queue, keep unspent tokens, return some, and leave with others; and the rate and the
// capacity are the smallest of those that nodes claim.
type rate struct {
	drawers []*drawer
	level   float64 // tokens; negative in debt
	at      time.Time
	next    time.Time // when time alone changes a decision; zero if it does not
}

// drawer is a TokenAccount of a node, as far as the ledger knows it.
type drawer struct {
	node     *node
	rate     *rate
	claim    RateClaim
	granted  uint64
	spent    uint64 // of them
	returned uint64 // of them, without being spent
	refunded uint64 // after they were spent
	ticket   uint64
	waits    time.Time // since when it waits and gets none; zero if it does not wait
	order    RateOrder
	dirty    bool
}

func (d *drawer) coming() int64 { return int64(d.granted - d.claim.Seen) } //nolint:gosec // bounded by the capacity

func (d *drawer) need() int64 { return max(0, d.claim.Need-d.coming()) }

// out is how many tokens nodes have and have not spent, as far as is known.
func (r *rate) out() (n float64) {
	for _, d := range r.drawers {
		n += float64(d.granted - d.spent - d.returned)
	}
	return n
}

// config returns the smallest rate and the smallest capacity of all nodes.
func (r *rate) config() (perSecond float64, capacity int64) {
	for i, d := range r.drawers {
		if i == 0 {
			perSecond, capacity = d.claim.PerSecond, d.claim.Capacity
		}
		perSecond, capacity = min(perSecond, d.claim.PerSecond), min(capacity, d.claim.Capacity)
	}
	return perSecond, capacity
}

// earn adds what the bucket has earned, and back, as far as there is room.
func (r *rate) earn(now time.Time, back float64) {
	perSecond, capacity := r.config()
	room := max(0, float64(capacity)-r.out())
	r.level = min(r.level+now.Sub(r.at).Seconds()*perSecond+back, room)
	r.at = now
}

func (l *Ledger) updateRates(now time.Time, n *node, claims []RateClaim) {
	var changed []*rate
	for _, c := range claims {
		d := n.drawers[c.ID]
		if d == nil {
			d = l.enterRate(now, n, c)
		}
		d.rate.earn(now, 0)
		returned := max(d.returned, c.Returned)
		back := returned - d.returned + max(d.refunded, c.Refunded) - d.refunded
		d.spent, d.returned, d.refunded = max(d.spent, c.Spent), returned, max(d.refunded, c.Refunded)
		d.rate.earn(now, float64(back))
		c.PerSecond, c.Capacity = max(c.PerSecond, 1e-9), max(c.Capacity, 1)
		c.Tier, c.Seen = min(max(c.Tier, 0), tiers-1), min(c.Seen, d.granted)
		if d.need() == 0 || c.Tier != d.claim.Tier {
			d.ticket = 0
		}
		d.claim = c
		l.waitRate(now, d)
		if !slices.Contains(changed, d.rate) {
			changed = append(changed, d.rate)
		}
	}
	for _, r := range changed {
		l.balanceRate(now, r)
	}
}

// enterRate adds a token account. It has no tokens: those of a former session are dropped.
func (l *Ledger) enterRate(now time.Time, n *node, c RateClaim) *drawer {
	r := l.rates[c.Rate]
	if r == nil {
		r = &rate{at: now}
		l.rates[c.Rate] = r
	}
	d := &drawer{
		node: n, rate: r, claim: c, granted: c.Seen, spent: c.Spent, returned: c.Returned, refunded: c.Refunded,
	}
	d.orderRate(l, RateOrder{ID: c.ID, Granted: c.Seen, Rival: -1})
	n.drawers[c.ID] = d
	r.drawers = append(r.drawers, d)
	return d
}

// waitRate updates since when a drawer waits.
func (l *Ledger) waitRate(now time.Time, d *drawer) {
	switch {
	case d.need() == 0:
		d.ticket, d.waits = 0, time.Time{}
	case d.ticket == 0:
		l.ticket++
		d.ticket = l.ticket
	}
	if d.need() > 0 && d.waits.IsZero() {
		d.waits = now
	}
}

// balanceRate grants the available tokens to the drawers that go first.
func (l *Ledger) balanceRate(now time.Time, r *rate) {
	r.earn(now, 0)
	r.next = time.Time{}
	perSecond, capacity := r.config()
	grant := func(d *drawer, n int64) {
		d.granted += uint64(n) //nolint:gosec // positive
		r.level -= float64(n)
		d.ticket, d.waits = 0, time.Time{}
		l.waitRate(now, d)
	}
	at := func(tokens float64) {
		wait := time.Duration(min(tokens/perSecond*1e9, math.MaxInt64/2))
		r.next = now.Add(max(wait, time.Millisecond/4))
	}
	for _, d := range r.drawers {
		if n := d.claim.Debt - d.coming(); n > 0 && r.level >= 0 {
			grant(d, n)
		}
	}
	d := r.first(now)
	for ; d != nil; d = r.first(now) {
		need := min(d.need(), capacity)
		if r.level < float64(need) {
			at(float64(need) - r.level)
			break
		}
		grant(d, need+min(max(d.claim.Extra, 0), int64(r.level)-need))
	}
	waiting := d != nil
	for _, d := range r.drawers {
		if n := d.claim.Spare - d.coming(); n > 0 && !waiting && r.level >= float64(n) {
			grant(d, n)
		}
		d.claim.Spare = 0 // it asks again
		if d.claim.Debt > d.coming() && r.next.IsZero() {
			at(-r.level)
		}
	}
	highest, second := r.rivals()
	for _, d := range r.drawers {
		o := RateOrder{ID: d.claim.ID, Granted: d.granted, Rival: highest, Capacity: capacity}
		if d.need() > 0 && d.claim.Tier == highest {
			o.Rival = second
		}
		if r.level < 0 {
			o.Debt = now.Add(time.Duration(min(-r.level/perSecond*1e9, math.MaxInt64/2))).UnixNano()
			o.Left = time.Duration(o.Debt - now.UnixNano())
		}
		d.orderRate(l, o)
	}
}

// rivals returns the two highest tiers in which drawers wait, -1 for none. They are equal if
// several drawers wait in the highest.
func (r *rate) rivals() (highest, second int) {
	highest, second = -1, -1
	for _, d := range r.drawers {
		if d.need() > 0 {
			second = max(second, min(highest, d.claim.Tier))
			highest = max(highest, d.claim.Tier)
		}
	}
	return highest, second
}

// first returns the drawer that goes first, or nil: one that starves, then by tier and order
// of arrival.
func (r *rate) first(now time.Time) (first *drawer) {
	for _, d := range r.drawers {
		if d.need() > 0 && (first == nil || d.before(first, now)) {
			first = d
		}
	}
	return first
}

func (d *drawer) before(e *drawer, now time.Time) bool {
	starves := func(x *drawer) int {
		if now.Sub(x.waits) >= starving {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(starves(e), starves(d)), cmp.Compare(e.claim.Tier, d.claim.Tier),
		cmp.Compare(d.ticket, e.ticket)) < 0
}

// orderRate sends an order if it differs from the last one. The end of a debt moves by
// rounding only.
func (d *drawer) orderRate(l *Ledger, o RateOrder) {
	was := d.order
	sameDebt := (was.Debt-o.Debt)/int64(time.Millisecond) == 0
	same := was.Granted == o.Granted && was.Rival == o.Rival && was.Capacity == o.Capacity && sameDebt
	if same && was.ID == o.ID {
		return
	}
	d.order = o
	if !d.dirty {
		d.dirty = true
		l.dirtyRates = append(l.dirtyRates, d)
	}
}

// RateOrders calls send with each order that is new since the last call.
func (l *Ledger) RateOrders(send func(node string, session uint64, o RateOrder)) {
	for _, d := range l.dirtyRates {
		d.dirty = false
		send(d.node.id, d.node.session, d.order)
	}
	l.dirtyRates = l.dirtyRates[:0]
}

// RateUsage returns the state of the rate of a token account, and whether there is such an account.
func (l *Ledger) RateUsage(now time.Time, id string, account uint64) (u RateUsage, ok bool) {
	n := l.nodes[id]
	if n == nil || n.drawers[account] == nil {
		return u, false
	}
	r := n.drawers[account].rate
	r.earn(now, 0)
	u = RateUsage{ID: account, Tokens: int64(math.Floor(r.level + r.out()))}
	for _, d := range r.drawers {
		if d.claim.Waiting > 0 {
			u.Waiters = append(u.Waiters, Waiter{
				Name: d.node.name, Tier: d.claim.Tier, Waiting: d.claim.Waiting, Own: d.node == n && d.claim.ID == account,
			})
		}
	}
	return u, true
}
