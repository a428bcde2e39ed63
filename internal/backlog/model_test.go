package backlog_test

import (
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
	turn    int
	virtual [backlog.Tiers]uint64
	ends    map[lineName]uint64 // when the last entry of a line ends in virtual time
	aside   map[lineName]bool   // lines whose key was at its limit since their first entry was looked at
	ticket  uint64
}

type lineName struct {
	tier int
	key  string
}

type modelEntry struct {
	id     int
	line   lineName
	weight int
	tag    uint64
	ticket uint64
}

func newModel(cfg backlog.Config) *model {
	return &model{
		cfg: cfg, caps: backlog.Resolve(cfg.Max, cfg.Caps), keyRuns: map[string]int{},
		ends: map[lineName]uint64{}, aside: map[lineName]bool{},
	}
}

func (m *model) cost(key string) uint64 { return 1 << 20 / m.share(key) }

func (m *model) share(key string) uint64 {
	if key == "" || m.cfg.Share == nil {
		return 1
	}
	return uint64(m.cfg.Share(key))
}

func (m *model) atLimit(key string) bool {
	return key != "" && m.cfg.PerKey > 0 && m.keyRuns[key] >= m.cfg.PerKey
}

func (m *model) line(name lineName) []*modelEntry {
	var line []*modelEntry
	for _, e := range m.waiting {
		if e.line == name {
			line = append(line, e)
		}
	}
	return line
}

func (m *model) push(id, tier int, key string, weight int) {
	m.ticket++
	e := &modelEntry{id: id, line: lineName{tier, key}, weight: weight, ticket: m.ticket}
	e.tag = max(m.virtual[tier], m.ends[e.line])
	m.ends[e.line] = e.tag + uint64(weight)*m.cost(key)
	m.waiting = append(m.waiting, e)
	if m.atLimit(key) {
		m.aside[e.line] = true
	}
}

// first is the entry of a tier that goes next: the head with the smallest tag
// among the lines whose key has room.
func (m *model) first(tier int) *modelEntry {
	var best *modelEntry
	seen := map[lineName]bool{}
	for _, e := range m.waiting {
		if e.line.tier != tier || seen[e.line] {
			continue
		}
		seen[e.line] = true
		if m.atLimit(e.line.key) {
			continue
		}
		if best == nil || e.tag < best.tag || e.tag == best.tag && e.ticket < best.ticket {
			best = e
		}
	}
	return best
}

func (m *model) next(running int) (e *modelEntry, guard bool) {
	if running >= m.cfg.Max {
		return nil, false
	}
	if m.turn%8 == 7 {
		if e := m.first(m.turn / 8); e != nil {
			return e, true
		}
	}
	for tier := backlog.Tiers - 1; tier >= 0; tier-- {
		if e := m.first(tier); e != nil && running < m.caps[tier] {
			return e, false
		}
	}
	return nil, false
}

func (m *model) peek(running int) *modelEntry {
	e, _ := m.next(running)
	if e == nil || running+e.weight > m.cfg.Max {
		return nil
	}
	return e
}

func (m *model) eligible() (mask uint8) {
	for tier := range backlog.Tiers {
		if m.first(tier) != nil {
			mask |= 1 << tier
		}
	}
	return mask
}

func (m *model) closed(running int) uint8 {
	mask := m.eligible()
	e, guard := m.next(running)
	if e == nil || running+e.weight <= m.cfg.Max {
		return mask
	}
	if guard {
		return 1<<backlog.Tiers - 1
	}
	for tier := range e.line.tier + 1 {
		mask |= 1 << tier
	}
	return mask
}

func (m *model) take(e *modelEntry, left uint64) {
	line := m.line(e.line)
	if line[len(line)-1] == e {
		m.ends[e.line] = left
	}
	if line[0] == e && len(line) > 1 {
		line[1].tag = max(line[1].tag, left)
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(x *modelEntry) bool { return x == e })
	empty := !slices.ContainsFunc(m.waiting, func(x *modelEntry) bool { return x.line.tier == e.line.tier })
	for name := range m.ends {
		if name.tier == e.line.tier && empty {
			delete(m.ends, name) // an empty tier starts afresh
		}
	}
}

// shares adds up the shares of the lines of a tier that may start.
func (m *model) shares(tier int) (sum uint64) {
	seen := map[lineName]bool{}
	for _, e := range m.waiting {
		if e.line.tier == tier && !seen[e.line] && !m.atLimit(e.line.key) {
			seen[e.line] = true
			sum += m.share(e.line.key)
		}
	}
	return sum
}

func (m *model) start(e *modelEntry) {
	m.virtual[e.line.tier] = max(e.tag, m.virtual[e.line.tier]+uint64(e.weight)*(1<<20)/m.shares(e.line.tier))
	m.take(e, e.tag+uint64(e.weight)*m.cost(e.line.key))
	m.turn = (m.turn + 1) % 56
	m.run(e.line.key)
}

func (m *model) run(key string) {
	if key == "" {
		return
	}
	m.keyRuns[key]++
	m.setAside(key)
}

// setAside marks the lines of a key at its limit; readmit lets them catch up
// with virtual time when the key has room again.
func (m *model) setAside(key string) {
	if !m.atLimit(key) {
		return
	}
	for _, e := range m.waiting {
		if e.line.key == key {
			m.aside[e.line] = true
		}
	}
}

func (m *model) readmit() {
	for name := range m.aside {
		if m.atLimit(name.key) {
			continue
		}
		delete(m.aside, name)
		if line := m.line(name); len(line) > 0 {
			line[0].tag = max(line[0].tag, m.virtual[name.tier])
		}
	}
}

func (m *model) pass(running int) {
	if m.eligible() == 0 || running >= m.cfg.Max {
		return
	}
	if _, guard := m.next(running); !guard {
		m.turn = (m.turn + 1) % 56
	}
}

func (m *model) remove(id int) {
	for _, e := range m.waiting {
		if e.id == id {
			m.take(e, e.tag)
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
	return running < m.caps[tier] && running+weight <= m.cfg.Max && m.closed(running)&(1<<tier) == 0 && !m.atLimit(key)
}
