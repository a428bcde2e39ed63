// Package ledger decides which nodes of a cluster have which permits of limits on work
// that is not a task. Its types are state machines without clocks, goroutines and networks:
// [Ledger] is the state of the node that leads, [Account] that of one user of a limit on any
// node. They exchange a [Claim] and an [Order]. None of them is safe for concurrent use.
//
// # Counters
//
// A claim has two counters that only grow: the permits that the account has received, and
// those of them that it has returned. An order has the number that the ledger has granted.
// The ledger counts what is granted and not known to be returned. That is never less than
// what the account has, however late claims and orders arrive.
//
// # Leases
//
// A node has its permits for one lease from the moment at which it sent the last claim that
// was acknowledged. The ledger counts them for one lease from the moment at which that claim
// arrived, which is later. The node uses only nine tenths of the lease, because clocks may
// differ in rate, and its work needs time to stop.
//
// # A new leader
//
// The permits of the leader before are known to their holders only. During its first lease,
// a ledger accepts what nodes claim to have, and grants only permits that were claimed so
// and have been returned since. When the lease is over, a permit that was not claimed is not
// in use any more.
package ledger

// The files:
//
//   - ledger.go: Ledger, its nodes and their leases
//   - balance.go: which nodes get the free permits, and which have to return some
//   - account.go: Account, what a node has leased of a limit
//   - rate.go: token buckets, and which nodes get the tokens
//   - tokenaccount.go: TokenAccount, what a node has leased of a rate
//   - message.go: what ledgers and accounts exchange

import (
	"errors"
	"slices"
	"time"
)

// ErrUnknown is the error of a claim of a node whose lease has ended, or that has joined
// again since: the node has to join.
var ErrUnknown = errors.New("ledger: the lease of the node has ended")

// Ledger is the permits of all limits. [New] makes one.
type Ledger struct {
	lease  time.Duration
	ready  time.Time // when unclaimed permits are free
	nodes  map[string]*node
	limits map[string]*limit
	ticket uint64    // of the member that has begun to wait last
	dirty  []*member // have an order that Orders has not returned

	rates      map[string]*rate
	dirtyRates []*drawer
}

// node is a node and the end of its lease.
type node struct {
	id, name string
	session  uint64
	expires  time.Time
	members  map[uint64]*member
	drawers  map[uint64]*drawer
}

// member is an account of a node, as far as the ledger knows it.
type member struct {
	node    *node
	limit   *limit
	claim   Claim  // the last one
	granted uint64 // permits, including those that the node does not know of yet
	back    uint64 // permits of them that were returned or revoked
	revoked uint64 // see Order
	keep    int
	dirty   bool

	tickets [tiers]uint64 // when each tier began to wait, or was granted a permit; 0: it does not wait
	served  time.Time     // of the last grant
	waits   time.Time     // since when it waits and gets none; zero if it does not wait
}

func (m *member) held() int { return int(m.granted - m.back) } //nolint:gosec // at most Max

// coming is how many permits are on their way to the member, as far as is known.
func (m *member) coming() int { return int(m.granted - m.claim.Seen) } //nolint:gosec // at most Max

// need is how many permits the member could use besides those on their way to it.
func (m *member) need() int { return max(0, m.claim.Need-m.coming()) }

// limit is the permits of one name.
type limit struct {
	members []*member // in the order in which they joined
	claimed int       // permits of former leaders that nodes have claimed to have
	next    time.Time // when time alone changes a decision; zero if it does not
}

// New returns the ledger of a node that leads since before now. The first one of a cluster
// has no former leader, and may use an old now.
func New(now time.Time, lease time.Duration) *Ledger {
	return &Ledger{
		lease: lease, ready: now.Add(lease), nodes: map[string]*node{}, limits: map[string]*limit{},
		rates: map[string]*rate{},
	}
}

// Join begins a session of a node, with the claims of all its accounts. A later session of
// the node has a higher number; an error means that there was one already. The node must
// receive no order of an earlier session any more.
func (l *Ledger) Join(now time.Time, id, name string, session uint64, claims []Claim, rates []RateClaim) error {
	l.Advance(now)
	n := l.nodes[id]
	if n == nil {
		n = &node{id: id, members: map[uint64]*member{}, drawers: map[uint64]*drawer{}}
		l.nodes[id] = n
	} else if session <= n.session {
		return ErrUnknown
	}
	n.name, n.session, n.expires = name, session, now.Add(l.lease)
	for i := range claims {
		if m := n.members[claims[i].ID]; m != nil && claims[i].Seen <= m.granted {
			m.granted = max(claims[i].Seen, m.back) // what was on its way does not arrive
		}
	}
	for i := range rates {
		if d := n.drawers[rates[i].ID]; d != nil {
			d.granted = max(rates[i].Seen, d.spent+d.returned)
		}
	}
	l.update(now, n, claims, true)
	l.updateRates(now, n, rates)
	for _, m := range n.members {
		l.order(m)
	}
	for _, d := range n.drawers {
		if !d.dirty {
			d.dirty = true
			l.dirtyRates = append(l.dirtyRates, d)
		}
	}
	return nil
}

// Claim updates accounts of a node, and renews its lease. After an error, the session is
// over, and the node has to join.
func (l *Ledger) Claim(now time.Time, id string, session uint64, claims []Claim, rates []RateClaim) error {
	l.Advance(now)
	n := l.nodes[id]
	if n == nil || n.session != session {
		return ErrUnknown
	}
	n.expires = now.Add(l.lease)
	l.update(now, n, claims, false)
	l.updateRates(now, n, rates)
	return nil
}

// update updates accounts. joins says that orders which were on their way have been lost.
func (l *Ledger) update(now time.Time, n *node, claims []Claim, joins bool) {
	var changed []*limit
	for _, c := range claims {
		m := n.members[c.ID]
		known := m != nil
		if !known {
			m = l.enter(now, n, c)
		}
		m.back = max(m.back, min(c.Returned, m.granted))
		c.Max, c.Tier = max(c.Max, 1), min(max(c.Tier, 0), tiers-1)
		c.Seen, c.Need = min(c.Seen, m.granted), max(c.Need, 0)
		before := m.claim
		m.claim = c
		if known && !joins && c.repeats(before) {
			continue // it only renews the lease, as most claims do
		}
		l.wait(now, m)
		if !slices.Contains(changed, m.limit) {
			changed = append(changed, m.limit)
		}
	}
	for _, lim := range changed {
		l.balance(now, lim)
	}
}

// enter adds an account. Permits that it has are of a former leader; or of this one, and
// their lease has ended.
func (l *Ledger) enter(now time.Time, n *node, c Claim) *member {
	lim := l.limits[c.Limit]
	if lim == nil {
		lim = &limit{}
		l.limits[c.Limit] = lim
	}
	m := &member{node: n, limit: lim, granted: c.Seen, back: min(c.Returned, c.Seen), keep: All}
	if now.Before(l.ready) {
		lim.claimed += m.held()
	} else if m.held() > 0 {
		m.back, m.revoked = m.granted, m.granted
	}
	n.members[c.ID] = m
	lim.members = append(lim.members, m)
	return m
}

// wait updates since when a member waits, and its places in the order of arrival.
func (l *Ledger) wait(now time.Time, m *member) {
	if m.need() == 0 {
		m.tickets, m.waits = [tiers]uint64{}, time.Time{}
		return
	}
	tier := m.claim.Tier
	clear(m.tickets[tier+1:])
	if m.tickets[tier] == 0 {
		l.ticket++
		m.tickets[tier] = l.ticket
	}
	if m.waits.IsZero() {
		m.waits = now
	}
}

// Advance does what is due by a time: it ends leases, and decides again where time matters.
func (l *Ledger) Advance(now time.Time) {
	changed := map[*limit]bool{}
	for id, n := range l.nodes {
		if n.expires.After(now) {
			continue
		}
		delete(l.nodes, id)
		for _, m := range n.members {
			m.limit.members = slices.DeleteFunc(m.limit.members, func(o *member) bool { return o == m })
			changed[m.limit] = true
		}
		for _, d := range n.drawers {
			d.rate.earn(now, 0)
			d.rate.drawers = slices.DeleteFunc(d.rate.drawers, func(e *drawer) bool { return e == d })
			d.rate.next = now
		}
	}
	l.dirtyRates = slices.DeleteFunc(l.dirtyRates, func(d *drawer) bool { return l.nodes[d.node.id] != d.node })
	for name, r := range l.rates {
		switch {
		case len(r.drawers) == 0:
			delete(l.rates, name)
		case !r.next.IsZero() && !r.next.After(now):
			l.balanceRate(now, r)
		}
	}
	l.dirty = slices.DeleteFunc(l.dirty, func(m *member) bool { return l.nodes[m.node.id] != m.node })
	for name, lim := range l.limits {
		switch due := !lim.next.IsZero() && !lim.next.After(now); {
		case len(lim.members) == 0 && !now.Before(l.ready):
			delete(l.limits, name)
		case due || changed[lim]:
			l.balance(now, lim)
		}
	}
}

// Next returns when Advance has something to do, unless a call changes that. It is zero if
// it has nothing to do.
func (l *Ledger) Next() (next time.Time) {
	earliest := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, n := range l.nodes {
		earliest(n.expires)
	}
	for _, lim := range l.limits {
		earliest(lim.next)
	}
	for _, r := range l.rates {
		earliest(r.next)
	}
	return next
}

func (l *Ledger) order(m *member) {
	if !m.dirty {
		m.dirty = true
		l.dirty = append(l.dirty, m)
	}
}

// Orders calls send with each order that is new since the last call. An order replaces the
// one before it for the same account.
func (l *Ledger) Orders(send func(node string, session uint64, o Order)) {
	for _, m := range l.dirty {
		m.dirty = false
		send(m.node.id, m.node.session, Order{ID: m.claim.ID, Granted: m.granted, Keep: m.keep, Revoked: m.revoked})
	}
	l.dirty = l.dirty[:0]
}

// Usage returns the state of the limit of an account, and whether there is such an account.
func (l *Ledger) Usage(id string, account uint64) (u Usage, ok bool) {
	n := l.nodes[id]
	if n == nil || n.members[account] == nil {
		return u, false
	}
	lim := n.members[account].limit
	u = Usage{ID: account, Max: lim.max()}
	for _, m := range lim.members {
		u.Holders = append(u.Holders, Holder{
			Name: m.node.name, Used: m.claim.Used, Waiting: m.claim.Waiting, Own: m.node == n && m.claim.ID == account,
		})
	}
	return u, true
}
