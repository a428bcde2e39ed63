package machine

// wire gives each part of the machine the parts that it uses, and its own empty maps.
func (m *Machine) wire() {
	m.watchers = watchers{clock: &m.clock, all: make(map[*watcher]struct{})}
	m.leaseLog = leaseLog{counters: &m.counters, tasks: m.tasks, starts: m.cfg.Starts}
	m.queues = queueSet{
		byName: make(map[string]*line), numbered: []*line{nil}, listeners: make(map[string][]chan struct{}),
		configure: m.configure,
	}
	m.rows = taskRows{journal: m.journal, queues: &m.queues}
	m.prefetch = prefetch{cfg: &m.cfg, journal: m.journal, queues: &m.queues, rows: &m.rows, tasks: m.tasks}
}
