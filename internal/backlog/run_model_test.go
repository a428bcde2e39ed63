package backlog_test

import (
	"cmp"
	"slices"

	"github.com/stintgo/stint/internal/backlog"
)

// runModel is the reference model of the policy with runs: of what has no key in a tier, the model has the first
// piece alone, and the next takes its place when that one has started or left. Its virtual start
// time is then when the start ends, or that of the piece that has left.
type runModel struct {
	*model

	behind [backlog.Tiers][]*modelEntry
}

func newRunModel(cfg backlog.Config) *runModel { return &runModel{model: newModel(cfg)} }

func (m *runModel) push(id int, queue queueName, weight int, ticket uint64) {
	if queue.key == "" && len(m.queue(queue)) > 0 {
		m.behind[queue.tier] = append(m.behind[queue.tier], &modelEntry{id: id, queue: queue, weight: weight, ticket: ticket})
		return
	}
	m.model.push(id, queue, weight, ticket)
}

// follow puts the next piece in the place of the first, with a tag.
func (m *runModel) follow(first *modelEntry, tag uint64) {
	tier := first.queue.tier
	next := m.behind[tier][0]
	m.behind[tier] = m.behind[tier][1:]
	next.tag = tag
	m.waiting[slices.Index(m.waiting, first)] = next
	slices.SortFunc(m.waiting, func(x, y *modelEntry) int { return cmp.Compare(x.ticket, y.ticket) })
}

func (m *runModel) start(e *modelEntry) {
	tier := e.queue.tier
	if e.queue.key != "" || len(m.behind[tier]) == 0 {
		m.model.start(e)
		return
	}
	tag := m.startTag(e)
	m.virtual[tier] = max(tag, m.virtual[tier]+uint64(e.weight)*(1<<20)/m.shares(tier))
	m.floors[e.queue.flow()] = tag + uint64(e.weight)*m.cost("")
	m.turn = (m.turn + 1) % 56
	m.follow(e, m.floors[e.queue.flow()])
}

func (m *runModel) remove(id int) {
	for tier := range m.behind {
		m.behind[tier] = slices.DeleteFunc(m.behind[tier], func(e *modelEntry) bool { return e.id == id })
	}
	for _, e := range m.waiting {
		switch {
		case e.id != id:
		case e.queue.key != "" || len(m.behind[e.queue.tier]) == 0:
			m.take(e)
			return
		default:
			m.follow(e, e.tag)
			return
		}
	}
}

func (m *runModel) lenTier(tier int) (n int) {
	for _, e := range m.waiting {
		if e.queue.tier == tier {
			n++
		}
	}
	return n + len(m.behind[tier])
}

func (m *runModel) all() []*modelEntry {
	all := slices.Clone(m.waiting)
	for _, behind := range m.behind {
		all = append(all, behind...)
	}
	return all
}

// alone is the tier of the run that is all that waits, if no cap below the maximum matters.
func (m *runModel) alone() int {
	if len(m.waiting) != 1 || m.waiting[0].queue.key != "" || m.caps[m.waiting[0].queue.tier] != m.cfg.Max {
		return -1
	}
	return m.waiting[0].queue.tier
}
