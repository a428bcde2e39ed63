package machine

import (
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// Config is how a machine is set up. The zero value is a good default.
type Config struct {
	// MaxPayload, MaxResult and MaxCheckpoint are in bytes: 1 MiB if they are 0.
	MaxPayload, MaxResult, MaxCheckpoint int
	// WatchBuffer is how many events a watcher may be behind: 1024 if it is 0.
	WatchBuffer int
	// Epoch is larger than those of earlier machines on the same rows, and below
	// 2²⁴: tokens and ages begin with it, and so grow over all of them.
	Epoch uint32
	// Keep is how many bytes of rows of waiting tasks stay in memory: a backlog that
	// fits starts without reading a row. It is for rows that take long to read.
	Keep int
	// Room is called before tasks are accepted, and returns why they cannot be, as with
	// a disk that is nearly full; nil if they can. It must be fast.
	Room func() error
	// Stalled returns a channel that is closed while a batch has waited so long, as for
	// room on a disk, that callers are not to wait with it; nil if that is never so. Then
	// Room returns why.
	Stalled func() <-chan struct{}
	// SetBack is called with the machine locked, at the first call, if the times in the
	// rows are ahead of it by a second or more. It may be nil.
	SetBack func(ahead time.Duration)
	// Damaged is called with the machine locked, for each task that is put in quarantine
	// because its row cannot be read. It may be nil.
	Damaged func(queue.ID, error)
	// Starts records the leases that there are; nil if the rows are never opened again.
	Starts Starts
}

// Machine is a [queue.Store]. Its methods are the calls of the store, in calls_work.go,
// calls_admin.go and calls_read.go: each checks its arguments, takes the lock for a step,
// has a part decide, and waits until the step is durable. It is safe for concurrent use;
// everything but cfg, journal and steps is used with the lock of steps held.
type Machine struct {
	cfg     Config
	steps   steps // the lock
	journal *journal.Journal

	// What there is.
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
	passes       passes
	cascades     cascades
	deps         dependencies
	states       stateIndex
	settings     settingSet

	// What answers questions.
	views   views
	finder  finder
	reasons reasons
	counts  counts

	// What changes tasks.
	transitions transitions
	holds       holds
	attempts    attempts
	submissions submissions
	claims      claimer
	commands    commands
	maintainer  maintainer
	corrector   corrector
}

var _ queue.Store = (*Machine)(nil)

// Open returns a machine on rows, which it closes when it is closed. It reads all rows.
func Open(rows Rows, cfg Config) (*Machine, error) {
	m := &Machine{
		cfg:      cfg.withDefaults(),
		journal:  journal.New(rows, cfg.Keep),
		tasks:    newTasks(),
		counters: newCounters(cfg.Epoch),
	}
	m.wire()
	for _, load := range []func() error{
		m.settings.load, m.scheduleSet.load, m.uniqueNames.load, m.cascades.load, m.newLoader().load, m.fingerprints.load,
	} {
		if err := load(); err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
	}
	if err := m.journal.Failed(); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	m.steps.mu.Lock()
	return m, m.steps.endAt(nil, nil)
}

// Close is as [queue.Store] says.
func (m *Machine) Close() error {
	m.steps.lockCorrected()
	if m.steps.closed {
		m.steps.mu.Unlock()
		return nil
	}
	m.steps.closed = true
	m.attempts.releaseAll()
	m.watchers.stop()
	err := m.steps.endAt(nil, nil)
	m.journal.Rest()
	m.steps.reading.Wait()
	if closing := m.journal.Close(); err == nil {
		err = closing
	}
	return err
}
