package machine

import (
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// Config is the configuration of a machine. The zero value is a good default.
type Config struct {
	// MaxPayload, MaxResult and MaxCheckpoint are limits in bytes; 0 means 1 MiB.
	MaxPayload, MaxResult, MaxCheckpoint int
	// WatchBuffer is the number of events that a watcher may be behind; 0 means 1024.
	WatchBuffer int
	// Epoch must be larger than those of earlier machines on the same rows, and below 2²⁴.
	// Tokens and ages begin with it, so that they grow from machine to machine.
	Epoch uint32
	// Keep limits the rows of Waiting tasks in memory, in bytes: a backlog that fits starts
	// without reading a row. Set it if reading a row takes long; 0 keeps none.
	Keep int
	// Room is called before tasks are accepted. It returns an error if they must be
	// refused, for example because the disk is nearly full. It must be fast. It may be nil
	// if Stalled is nil.
	Room func() error
	// Stalled returns a channel that is closed while a batch is blocked for so long, for
	// example by a full disk, that callers must not wait for it. Room then returns the
	// reason. Stalled may be nil: callers always wait.
	Stalled func() <-chan struct{}
	// SetBack is called by the first call, with the machine locked, if times in the rows
	// are ahead of that call by a second or more. It may be nil.
	SetBack func(ahead time.Duration)
	// Damaged is called with the machine locked for each task that is put in quarantine
	// because its row cannot be read. It may be nil.
	Damaged func(queue.ID, error)
	// Fence says that transactions of callers settle attempts: Maintain ends no remote lease
	// that has no fence. See [TxOutcomes].
	Fence bool
	// Leases stores the lease log; nil if the rows are never opened again.
	Leases LeaseStorage
}

// withDefaults returns the configuration with its unset limits as their defaults.
func (c Config) withDefaults() Config {
	const maxBytes, watchBuffer = 1 << 20, 1024
	for n, usual := range map[*int]int{
		&c.MaxPayload: maxBytes, &c.MaxResult: maxBytes, &c.MaxCheckpoint: maxBytes, &c.WatchBuffer: watchBuffer,
	} {
		if *n == 0 {
			*n = usual
		}
	}
	return c
}

// Machine is a [queue.Store]. Its methods are the calls of the store, in calls_work.go,
// calls_admin.go and calls_read.go. A call checks its arguments, takes the lock for a step,
// has a part decide, and waits until the step is durable. A Machine is safe for concurrent
// use.
type Machine struct {
	parts // guarded by the lock of steps
	steps steps
}

var _ queue.Store = (*Machine)(nil)

// Open returns a machine on rows. It reads all rows. The machine closes them in Close.
func Open(rows Rows, cfg Config) (*Machine, error) {
	epoch, err := epochOf(rows, cfg.Epoch)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	m := &Machine{parts: parts{
		cfg:      cfg.withDefaults(),
		journal:  journal.New(rows, cfg.Keep),
		tasks:    newTasks(),
		counters: newCounters(epoch),
	}}
	m.cfg.Epoch = epoch
	m.wire()
	m.steps = steps{
		cascades: &m.cascades, cfg: &m.cfg, corrector: &m.corrector, journal: m.journal, keyRates: &m.keyRates,
		leaseLog: &m.leaseLog, scans: &m.scans,
	}
	for _, load := range []func() error{
		m.settings.load, m.scheduleSet.load, m.uniqueNames.load, m.cascades.load, m.loader().load, m.fingerprints.load,
		m.savedRates.load,
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
	if m.steps.closed.Load() {
		m.steps.mu.Unlock()
		return nil
	}
	m.steps.closed.Store(true)
	m.attempts.releaseAll()
	m.savedRates.save()
	m.watchers.stop()
	err := m.steps.endAt(nil, nil)
	m.journal.Rest()
	m.steps.using.Wait()
	if closing := m.journal.Close(); err == nil {
		err = closing
	}
	return err
}
