package machine

import "github.com/stintgo/stint/queue"

// configureTotals puts what is set for all queues together into force.
func (m *Machine) configureTotals() {
	all := m.settings[""]
	m.totals = inForce(&all, &queue.Configured{}, totalFields())
	m.total.configure(m.totals.Total)
	m.configureKeyTotals(all.Keys)
}

// totalFields are the fields that count for all queues together.
func totalFields() []queue.Field { return []queue.Field{queue.FieldTotal, queue.FieldTotalPerKey} }

// configureKeyTotals puts the limits of keys in all queues together into force.
func (m *Machine) configureKeyTotals(keys map[string]queue.Layers) {
	var own map[string]int
	for key, layers := range keys {
		if value, _, ok := layers.Value(queue.FieldTotal); ok {
			if own == nil {
				own = make(map[string]int)
			}
			own[key] = value.Total
		}
	}
	m.keyTotals.configure(m.totals.TotalPerKey, own, m.leases.all, m.queues.byName)
}
