package machine

import "github.com/stintgo/stint/queue"

// wire connects the parts of a machine: it gives each part pointers to the parts that it
// uses, and empty maps. The parts form an acyclic graph: a part uses only parts above it
// here, except that the functions scans.visit and queueSet.configure call parts below.
func (m *Machine) wire() {
	m.wireMemory()
	m.wireAnswers()
	m.wireTransitions()
}

// wireMemory connects the parts that keep state and change no task.
func (m *Machine) wireMemory() {
	m.watchers = watchers{clock: &m.clock, all: make(map[*watcher]struct{})}
	m.queues = queueSet{
		byName: make(map[string]*queueState), numbered: []*queueState{nil},
		listeners: make(map[string][]chan struct{}), configure: m.settings.configure, keyLimits: keyLimitsOf(nil),
		forgetting: heap[*queueState]{index: indexForgetting},
	}
	m.workerSet = workerSet{
		clock: &m.clock, queues: &m.queues, byName: make(map[string]*worker),
		seen: make(map[handles]queue.Seen),
	}
	m.leaseLog = leaseLog{counters: &m.counters, tasks: m.tasks, storage: m.cfg.Leases}
	m.rows = taskRows{journal: m.journal, queues: &m.queues}
	m.prefetch = prefetch{cfg: &m.cfg, journal: m.journal, queues: &m.queues, rows: &m.rows, tasks: m.tasks}
	m.uniqueNames = uniqueNames{
		clock: &m.clock, journal: m.journal, byName: make(map[string]*reservedName),
		ends: heap[*reservedName]{index: indexOfName},
	}
	m.fingerprints = fingerprints{journal: m.journal, tasks: m.tasks, byWork: make(map[fingerprint]*linkedTasks)}
	m.scheduleSet = scheduleSet{journal: m.journal, byName: make(map[string]queue.ScheduleState)}

	m.total = total{clock: &m.clock}
	m.slots = slots{total: &m.total, keyTotals: &m.keyTotals}
	m.keyRates = keyRates{clock: &m.clock, byTime: heap[*keyRate]{index: indexByRate}}
	m.savedRates = savedRates{clock: &m.clock, journal: m.journal, keyRates: &m.keyRates, queues: &m.queues}

	m.scans = scans{journal: m.journal, rows: &m.rows, left: visitsPerStep, visit: m.holds.visit}
	m.cascades = cascades{
		clock: &m.clock, counters: &m.counters, journal: m.journal, scans: &m.scans, rows: &m.rows,
		found: make(map[queue.ID][]*waiters),
	}
	m.deps = dependencies{
		cascades: &m.cascades, scans: &m.scans, queues: &m.queues, tasks: m.tasks,
		predecessors: make(map[queue.ID]*predecessor), batches: make(map[queue.ID]*batch),
	}
	m.states = stateIndex{
		cfg: &m.cfg, clock: &m.clock, deps: &m.deps, keyTotals: &m.keyTotals, leaseLog: &m.leaseLog,
		queues: &m.queues, slots: &m.slots, tasks: m.tasks, due: heap[*task]{index: indexByTime},
		leases: heap[*task]{index: indexByTime}, deadlines: heap[*task]{index: indexByDeadline},
	}
	m.settings = settingSet{
		cfg: &m.cfg, clock: &m.clock, journal: m.journal, keyRates: &m.keyRates, keyTotals: &m.keyTotals,
		queues: &m.queues, states: &m.states, total: &m.total, byName: make(map[string]queue.Configured),
	}
}

// wireAnswers connects the parts that answer queries.
func (m *Machine) wireAnswers() {
	m.views = views{deps: &m.deps, keyTotals: &m.keyTotals, queues: &m.queues}
	m.finder = finder{journal: m.journal, queues: &m.queues, rows: &m.rows, tasks: m.tasks, views: &m.views}
	m.reasons = reasons{
		keyTotals: &m.keyTotals, queues: &m.queues, rows: &m.rows, settings: &m.settings, states: &m.states,
		tasks: m.tasks, total: &m.total, views: &m.views, workerSet: &m.workerSet,
	}
	m.counts = counts{keyTotals: &m.keyTotals, settings: &m.settings, tasks: m.tasks}
}

// wireTransitions connects the parts that change tasks, and the steps.
func (m *Machine) wireTransitions() {
	m.transitions = transitions{
		clock: &m.clock, deps: &m.deps, fingerprints: &m.fingerprints, journal: m.journal,
		prefetch: &m.prefetch, queues: &m.queues, rows: &m.rows, slots: &m.slots, states: &m.states,
		tasks: m.tasks, watchers: &m.watchers,
	}
	m.holds = holds{
		clock: &m.clock, deps: &m.deps, scans: &m.scans, queues: &m.queues, rows: &m.rows, states: &m.states,
		transitions: &m.transitions,
	}
	m.attempts = attempts{
		cfg: &m.cfg, clock: &m.clock, fingerprints: &m.fingerprints, journal: m.journal, queues: &m.queues,
		rows: &m.rows, states: &m.states, tasks: m.tasks, transitions: &m.transitions,
	}
	m.submissions = submissions{
		cfg: &m.cfg, clock: &m.clock, counters: &m.counters, fingerprints: &m.fingerprints, holds: &m.holds,
		journal: m.journal, settings: &m.settings, states: &m.states, tasks: m.tasks,
		transitions: &m.transitions, uniqueNames: &m.uniqueNames,
	}
	m.claims = claimer{
		attempts: &m.attempts, clock: &m.clock, counters: &m.counters, holds: &m.holds, journal: m.journal,
		keyRates: &m.keyRates, leaseLog: &m.leaseLog, scans: &m.scans, prefetch: &m.prefetch,
		queues: &m.queues, rows: &m.rows, slots: &m.slots, states: &m.states, tasks: m.tasks, total: &m.total,
		transitions: &m.transitions, views: &m.views, watchers: &m.watchers, workerSet: &m.workerSet,
	}
	m.commands = commands{
		attempts: &m.attempts, clock: &m.clock, deps: &m.deps, finder: &m.finder, fingerprints: &m.fingerprints,
		holds: &m.holds, journal: m.journal, scans: &m.scans, queues: &m.queues, rows: &m.rows,
		states: &m.states, tasks: m.tasks, transitions: &m.transitions,
	}
	m.maintainer = maintainer{
		attempts: &m.attempts, cfg: &m.cfg, clock: &m.clock, deps: &m.deps, holds: &m.holds, journal: m.journal,
		keyRates: &m.keyRates, scans: &m.scans, queues: &m.queues, rows: &m.rows, settings: &m.settings,
		states: &m.states, tasks: m.tasks, total: &m.total, transitions: &m.transitions,
		uniqueNames: &m.uniqueNames, watchers: &m.watchers,
	}
	m.corrector = corrector{
		cascades: &m.cascades, cfg: &m.cfg, clock: &m.clock, deps: &m.deps, journal: m.journal, rows: &m.rows,
		savedRates: &m.savedRates, states: &m.states, tasks: m.tasks, uniqueNames: &m.uniqueNames,
		opening: new(opening),
	}
	m.steps = steps{
		cascades: &m.cascades, cfg: &m.cfg, corrector: &m.corrector, journal: m.journal, keyRates: &m.keyRates,
		leaseLog: &m.leaseLog, scans: &m.scans,
	}
}

// newLoader returns the part that reads the rows of tasks in Open.
func (m *Machine) newLoader() *loader {
	return &loader{
		attempts: &m.attempts, cascades: &m.cascades, clock: &m.clock, corrector: &m.corrector,
		counters: &m.counters, deps: &m.deps, holds: &m.holds, journal: m.journal, leaseLog: &m.leaseLog,
		scans: &m.scans, queues: &m.queues, states: &m.states, tasks: m.tasks, transitions: &m.transitions,
	}
}
