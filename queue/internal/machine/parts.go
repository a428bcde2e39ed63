package machine

import (
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// parts is the state of a machine, and what decides about it: each part is a type in a file
// of its own, with pointers to the parts that it uses. The lock of steps guards all parts,
// except cfg, which does not change, and the journal, which has a lock of its own.
type parts struct {
	cfg     Config
	journal *journal.Journal

	// State.
	clock        clock
	counters     counters
	tasks        *tasks
	keyTotals    keyTotals
	watchers     watchers
	queues       queueSet
	workerSet    workerSet
	leaseLog     leaseLog
	rows         taskRows
	prefetch     prefetch
	uniqueNames  uniqueNames
	fingerprints fingerprints
	scheduleSet  scheduleSet
	total        total
	slots        slots
	keyRates     keyRates
	savedRates   savedRates
	scans        scans
	cascades     cascades
	deps         dependencies
	states       stateIndex
	settings     settingSet

	// Queries.
	views   views
	finder  finder
	reasons reasons
	counts  counts

	// Changes of tasks.
	transitions transitions
	holds       holds
	attempts    attempts
	submissions submissions
	claims      claimer
	commands    commands
	maintainer  maintainer
	corrector   corrector
}

// wire connects the parts: it gives each part pointers to the parts that it uses, and empty
// maps. The caller has set cfg, journal, counters and tasks. The parts form an acyclic
// graph: a part uses only parts above it here, except that the functions scans.visit and
// queueSet.configure call parts below.
func (p *parts) wire() {
	p.wireMemory()
	p.wireAnswers()
	p.wireTransitions()
}

// wireMemory connects the parts that keep state and change no task.
func (p *parts) wireMemory() {
	p.watchers = watchers{clock: &p.clock, all: make(map[*watcher]struct{})}
	p.queues = queueSet{
		byName: make(map[string]*queueState), numbered: []*queueState{nil},
		listeners: make(map[string][]chan struct{}), configure: p.settings.configure, keyLimits: keyLimitsOf(nil),
		forgetting: heap[*queueState]{index: indexForgetting},
	}
	p.workerSet = workerSet{
		clock: &p.clock, queues: &p.queues, byName: make(map[string]*worker),
		seen: make(map[handles]queue.Seen),
	}
	p.leaseLog = leaseLog{counters: &p.counters, tasks: p.tasks, storage: p.cfg.Leases}
	p.rows = taskRows{journal: p.journal, queues: &p.queues}
	p.prefetch = prefetch{cfg: &p.cfg, journal: p.journal, queues: &p.queues, rows: &p.rows, tasks: p.tasks}
	p.uniqueNames = uniqueNames{
		clock: &p.clock, journal: p.journal, byName: make(map[string]*reservedName),
		ends: heap[*reservedName]{index: indexOfName},
	}
	p.fingerprints = fingerprints{journal: p.journal, tasks: p.tasks, byWork: make(map[fingerprint]*linkedTasks)}
	p.scheduleSet = scheduleSet{journal: p.journal, byName: make(map[string]queue.ScheduleState)}

	p.total = total{clock: &p.clock}
	p.slots = slots{total: &p.total, keyTotals: &p.keyTotals}
	p.keyRates = keyRates{clock: &p.clock, byTime: heap[*keyRate]{index: indexByRate}}
	p.savedRates = savedRates{clock: &p.clock, journal: p.journal, keyRates: &p.keyRates, queues: &p.queues}

	p.scans = scans{journal: p.journal, rows: &p.rows, left: visitsPerStep, visit: p.holds.visit}
	p.cascades = cascades{
		clock: &p.clock, counters: &p.counters, journal: p.journal, scans: &p.scans, rows: &p.rows,
		found: make(map[queue.ID][]*waiters),
	}
	p.deps = dependencies{
		cascades: &p.cascades, scans: &p.scans, queues: &p.queues, tasks: p.tasks,
		predecessors: make(map[queue.ID]*predecessor), batches: make(map[queue.ID]*batch),
	}
	p.states = stateIndex{
		cfg: &p.cfg, clock: &p.clock, deps: &p.deps, keyTotals: &p.keyTotals, leaseLog: &p.leaseLog,
		queues: &p.queues, slots: &p.slots, tasks: p.tasks, due: heap[*task]{index: indexByTime},
		leases: heap[*task]{index: indexByTime}, deadlines: heap[*task]{index: indexByDeadline},
	}
	p.settings = settingSet{
		cfg: &p.cfg, clock: &p.clock, journal: p.journal, keyRates: &p.keyRates, keyTotals: &p.keyTotals,
		queues: &p.queues, states: &p.states, total: &p.total, byName: make(map[string]queue.Configured),
	}
}

// wireAnswers connects the parts that answer queries.
func (p *parts) wireAnswers() {
	p.views = views{deps: &p.deps, keyTotals: &p.keyTotals, queues: &p.queues}
	p.finder = finder{journal: p.journal, queues: &p.queues, rows: &p.rows, tasks: p.tasks, views: &p.views}
	p.reasons = reasons{
		keyTotals: &p.keyTotals, queues: &p.queues, rows: &p.rows, settings: &p.settings, states: &p.states,
		tasks: p.tasks, total: &p.total, views: &p.views, workerSet: &p.workerSet,
	}
	p.counts = counts{keyTotals: &p.keyTotals, settings: &p.settings, tasks: p.tasks}
}

// wireTransitions connects the parts that change tasks.
func (p *parts) wireTransitions() {
	p.transitions = transitions{
		clock: &p.clock, deps: &p.deps, fingerprints: &p.fingerprints, journal: p.journal,
		prefetch: &p.prefetch, queues: &p.queues, rows: &p.rows, slots: &p.slots, states: &p.states,
		tasks: p.tasks, watchers: &p.watchers,
	}
	p.holds = holds{
		clock: &p.clock, deps: &p.deps, scans: &p.scans, queues: &p.queues, rows: &p.rows, states: &p.states,
		transitions: &p.transitions,
	}
	p.attempts = attempts{
		cfg: &p.cfg, clock: &p.clock, fingerprints: &p.fingerprints, journal: p.journal, queues: &p.queues,
		rows: &p.rows, states: &p.states, tasks: p.tasks, transitions: &p.transitions,
	}
	p.submissions = submissions{
		cfg: &p.cfg, clock: &p.clock, counters: &p.counters, fingerprints: &p.fingerprints, holds: &p.holds,
		journal: p.journal, settings: &p.settings, states: &p.states, tasks: p.tasks,
		transitions: &p.transitions, uniqueNames: &p.uniqueNames,
	}
	p.claims = claimer{
		attempts: &p.attempts, clock: &p.clock, counters: &p.counters, holds: &p.holds, journal: p.journal,
		keyRates: &p.keyRates, leaseLog: &p.leaseLog, scans: &p.scans, prefetch: &p.prefetch,
		queues: &p.queues, rows: &p.rows, slots: &p.slots, states: &p.states, tasks: p.tasks, total: &p.total,
		transitions: &p.transitions, views: &p.views, watchers: &p.watchers, workerSet: &p.workerSet,
	}
	p.commands = commands{
		attempts: &p.attempts, clock: &p.clock, deps: &p.deps, finder: &p.finder, fingerprints: &p.fingerprints,
		holds: &p.holds, journal: p.journal, scans: &p.scans, queues: &p.queues, rows: &p.rows,
		states: &p.states, tasks: p.tasks, transitions: &p.transitions,
	}
	p.maintainer = maintainer{
		attempts: &p.attempts, cfg: &p.cfg, clock: &p.clock, deps: &p.deps, holds: &p.holds, journal: p.journal,
		keyRates: &p.keyRates, scans: &p.scans, queues: &p.queues, rows: &p.rows, settings: &p.settings,
		states: &p.states, tasks: p.tasks, total: &p.total, transitions: &p.transitions,
		uniqueNames: &p.uniqueNames, watchers: &p.watchers,
	}
	p.corrector = corrector{
		cascades: &p.cascades, cfg: &p.cfg, clock: &p.clock, deps: &p.deps, journal: p.journal, rows: &p.rows,
		savedRates: &p.savedRates, states: &p.states, tasks: p.tasks, uniqueNames: &p.uniqueNames,
		opening: new(opening),
	}
}

// loader returns the part that reads the rows of tasks in Open.
func (p *parts) loader() *loader {
	return &loader{
		attempts: &p.attempts, cascades: &p.cascades, clock: &p.clock, corrector: &p.corrector,
		counters: &p.counters, deps: &p.deps, holds: &p.holds, journal: p.journal, leaseLog: &p.leaseLog,
		scans: &p.scans, queues: &p.queues, states: &p.states, tasks: p.tasks, transitions: &p.transitions,
	}
}
