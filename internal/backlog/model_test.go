package backlog_test

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stintgo/stint/internal/backlog"
)

// model is the policy written to be obviously right: one slice of everything
// that waits, scanned from end to end for every decision.
type model struct {
	cfg     backlog.Config
	caps    [backlog.Tiers]int
	waiting []*modelEntry
	keyRuns map[string]int
	blocked map[string]backlog.Cause
	turn    int
	virtual [backlog.Tiers]uint64
	ends    map[queueName]uint64 // when the last entry of a queue ends in virtual time
	floors  map[flowName]uint64  // when the last start of a flow ends in virtual time
	aside   map[flowName]bool    // flows that were set aside while they had entries
	ticket  uint64
}

type queueName struct {
	tier  int
	key   string
	class int
}

type flowName struct {
	tier int
	key  string
}

func (q queueName) flow() flowName { return flowName{q.tier, q.key} }

type modelEntry struct {
	id     int
	queue  queueName
	weight int
	tag    uint64
	ticket uint64
	aged   bool // younger entries were queued in its queue before it
}

func newModel(cfg backlog.Config) *model {
	return &model{
		cfg: cfg, caps: backlog.Resolve(cfg.Max, cfg.Caps), keyRuns: map[string]int{}, blocked: map[string]backlog.Cause{},
		ends: map[queueName]uint64{}, floors: map[flowName]uint64{}, aside: map[flowName]bool{},
	}
}

func (m *model) cost(key string) uint64 { return 1 << 20 / m.share(key) }

func (m *model) share(key string) uint64 {
	if key == "" || m.cfg.Share == nil {
		return 1
	}
	return uint64(m.cfg.Share(key))
}

// held reports whether nothing of a key may start.
func (m *model) held(key string) bool {
	limit := m.limitOf(key)
	return m.blocked[key] != 0 || limit > 0 && m.keyRuns[key] >= limit
}

func (m *model) limitOf(key string) int {
	if key == "" {
		return 0
	}
	for _, limits := range []map[string]int{m.cfg.KeyLimits, m.cfg.SharedLimits} {
		if limit, ok := limits[key]; ok {
			return limit
		}
	}
	return m.cfg.PerKey
}

func (m *model) heldByKey() (n int) {
	for _, e := range m.waiting {
		if m.held(e.queue.key) {
			n++
		}
	}
	return n
}

func (m *model) block(key string, causes backlog.Cause) {
	if m.blocked[key] = causes; key == "" {
		m.blocked[key] = 0
	}
	m.setAside(key)
	m.readmit()
}

func (m *model) queue(name queueName) []*modelEntry {
	var queue []*modelEntry
	for _, e := range m.waiting {
		if e.queue == name {
			queue = append(queue, e)
		}
	}
	return queue
}

// push queues an entry; a ticket of 0 stands for a new one.
func (m *model) push(id int, queue queueName, weight int, ticket uint64) {
	if ticket == 0 {
		ticket = m.ticket + 1
	}
	m.ticket = max(m.ticket, ticket)
	e := &modelEntry{id: id, queue: queue, weight: weight, ticket: ticket, tag: m.virtual[queue.tier]}
	queued := m.queue(queue)
	if len(queued) == 0 {
		m.ends[queue] = max(m.ends[queue], m.floors[queue.flow()])
	}
	e.aged = slices.ContainsFunc(queued, func(x *modelEntry) bool { return !x.aged && x.ticket > ticket })
	if !e.aged {
		e.tag = max(e.tag, m.ends[queue])
		m.ends[queue] = e.tag + uint64(weight)*m.cost(queue.key)
	}
	m.waiting = append(m.waiting, e)
	slices.SortFunc(m.waiting, func(x, y *modelEntry) int { return cmp.Compare(x.ticket, y.ticket) })
	m.setAside(queue.key)
}

// startTag is the virtual time at which an entry would start now: when it was
// queued for, but not before its flow's last start has ended.
func (m *model) startTag(e *modelEntry) uint64 { return max(e.tag, m.floors[e.queue.flow()]) }

// first is the entry of a tier that goes next: the oldest one, of classes that
// are taken, of the key whose turn it is.
func (m *model) first(tier int, takes []int) *modelEntry {
	best := m.turnOf(tier, takes)
	if best == nil {
		return nil
	}
	for _, e := range m.waiting { // by their tickets
		if e.queue.flow() == best.queue.flow() && slices.Contains(takes, e.queue.class) {
			return e
		}
	}
	return nil
}

// turnOf is an entry of the key whose turn it is: the one with the smallest tag
// among the first of all queues of classes that are taken, whose key has room.
func (m *model) turnOf(tier int, takes []int) *modelEntry {
	var best *modelEntry
	var seen []queueName
	for _, e := range m.waiting {
		if e.queue.tier != tier || slices.Contains(seen, e.queue) {
			continue
		}
		seen = append(seen, e.queue)
		if m.held(e.queue.key) || !slices.Contains(takes, e.queue.class) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(m.startTag(e), m.startTag(best)), cmp.Compare(e.ticket, best.ticket)) < 0 {
			best = e
		}
	}
	return best
}

func (m *model) next(running int, takes []int) (e *modelEntry, guard bool) {
	if running >= m.cfg.Max {
		return nil, false
	}
	if m.turn%8 == 7 {
		if e := m.first(m.turn/8, takes); e != nil {
			return e, true
		}
	}
	for tier := backlog.Tiers - 1; tier >= 0; tier-- {
		if e := m.first(tier, takes); e != nil && running < m.caps[tier] {
			return e, false
		}
	}
	return nil, false
}

func (m *model) peek(running int, takes []int) *modelEntry {
	e, _ := m.next(running, takes)
	if e == nil || running+e.weight > m.cfg.Max {
		return nil
	}
	return e
}

var everyClass = []int{0, 1, 2, 3}

func (m *model) eligible() (mask uint8) {
	for _, e := range m.waiting {
		if !m.held(e.queue.key) {
			mask |= 1 << e.queue.tier
		}
	}
	return mask
}

func (m *model) closed(running int) uint8 {
	mask := m.eligible()
	e, guard := m.next(running, everyClass)
	if e == nil || running+e.weight <= m.cfg.Max {
		return mask
	}
	if guard {
		return 1<<backlog.Tiers - 1
	}
	for tier := range e.queue.tier + 1 {
		mask |= 1 << tier
	}
	return mask
}

func (m *model) take(e *modelEntry) {
	younger := func(x *modelEntry) bool { return !x.aged && x.ticket > e.ticket }
	if !e.aged && !slices.ContainsFunc(m.queue(e.queue), younger) {
		m.ends[e.queue] = e.tag
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(x *modelEntry) bool { return x == e })
	if slices.ContainsFunc(m.waiting, func(x *modelEntry) bool { return x.queue.tier == e.queue.tier }) {
		return
	}
	// An empty tier starts afresh.
	maps.DeleteFunc(m.ends, func(q queueName, _ uint64) bool { return q.tier == e.queue.tier })
	maps.DeleteFunc(m.floors, func(f flowName, _ uint64) bool { return f.tier == e.queue.tier })
}

// shares adds up the shares of the flows of a tier that may start.
func (m *model) shares(tier int) (sum uint64) {
	seen := map[flowName]bool{}
	for _, e := range m.waiting {
		if e.queue.tier == tier && !seen[e.queue.flow()] && !m.held(e.queue.key) {
			seen[e.queue.flow()] = true
			sum += m.share(e.queue.key)
		}
	}
	return sum
}

func (m *model) start(e *modelEntry) {
	tier, tag := e.queue.tier, m.startTag(e)
	m.virtual[tier] = max(tag, m.virtual[tier]+uint64(e.weight)*(1<<20)/m.shares(tier))
	m.floors[e.queue.flow()] = tag + uint64(e.weight)*m.cost(e.queue.key)
	m.take(e)
	m.turn = (m.turn + 1) % 56
	m.run(e.queue.key)
}

func (m *model) run(key string) {
	if key == "" {
		return
	}
	m.keyRuns[key]++
	m.setAside(key)
}

// setAside marks the flows of a key that is held; readmit has them catch up
// with virtual time when the key has room again.
func (m *model) setAside(key string) {
	if !m.held(key) {
		return
	}
	for _, e := range m.waiting {
		if e.queue.key == key {
			m.aside[e.queue.flow()] = true
		}
	}
}

func (m *model) readmit() {
	for flow := range m.aside {
		if m.held(flow.key) {
			continue
		}
		delete(m.aside, flow)
		if slices.ContainsFunc(m.waiting, func(e *modelEntry) bool { return e.queue.flow() == flow }) {
			m.floors[flow] = max(m.floors[flow], m.virtual[flow.tier])
		}
	}
}

func (m *model) pass(running int, takes []int) {
	if m.eligible() == 0 || running >= m.cfg.Max {
		return
	}
	if _, guard := m.next(running, takes); !guard {
		m.turn = (m.turn + 1) % 56
	}
}

func (m *model) remove(id int) {
	for _, e := range m.waiting {
		if e.id == id {
			m.take(e)
			return
		}
	}
}

func (m *model) finish(key string) {
	if key != "" {
		m.keyRuns[key]--
		m.readmit()
	}
}

func (m *model) admits(tier int, key string, weight, running int) bool {
	return running < m.caps[tier] && running+weight <= m.cfg.Max && m.closed(running)&(1<<tier) == 0 && !m.held(key)
}
