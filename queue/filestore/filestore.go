// Package filestore keeps durable tasks in a directory of this machine. They survive kill
// -9 and a loss of power: every call is answered after its changes have been synced, and
// concurrent calls share a sync. [Config.MayLose] trades that for speed.
//
// A directory belongs to one process at a time. It must contain no other files, and may
// be copied or moved while no process has it open.
//
// Leases are recorded without a sync, which survives kill -9 but not a loss of power.
// When the directory is opened again after a crash, the crash counts for the tasks that
// ran in that process, and tasks that run in other processes continue there.
//
// When the disk has little space, tasks are refused with [queue.ErrUnavailable], and the
// present ones continue. When it is full, changes wait for space, and no task starts
// whose lease cannot be recorded. Calls do not wait that long: after 3 s they return
// [queue.ErrUnavailable], as later calls do at once, until there is space. Their changes
// have been decided, and are written then. Reads, and the leases of running tasks,
// continue meanwhile. After any other error of the disk its content is unknown, so the
// store accepts no more changes: it has to be closed, and opened again.
//
// A task that cannot be read, because a file is damaged, delays no other task: see
// [queue.HoldDamaged]. It returns when the directory is restored from a copy. Until then
// a closed store may not open, because Open reads all tasks.
package filestore

// The files:
//
//   - filestore.go: Config, Store, Open and Close
//   - directory.go: opens the directory and the database in it, and refuses what is not a store
//   - rows.go: the rows of the state machine, in the database
//   - options.go: the options of the database, and its errors in the log
//   - syncer.go: syncs several batches at once, for Config.MayLose
//   - leaselog.go: the lease log of the state machine
//   - logfile.go: a log of the database that is longer than its content
//   - tail.go: the number of the last batch, by which a truncated log is detected
//   - manifest.go: detects a database that has lost the end of its manifest
//   - opfs.go: a file system that passes each change through one function
//   - failstop.go: makes writers wait for space, and keeps other write errors from the database
//   - copy.go: Copy
//   - place.go: Place, for moves to and from other stores
//   - holder_unix.go: which process has the directory open
//   - holder_other.go: the same on other systems: unknown

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/logthrottle"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// Config has the limits of a store. The zero value is a good default.
type Config struct {
	MaxPayload    int // bytes; 0 means 1 MiB, also for the next two
	MaxResult     int
	MaxCheckpoint int
	WatchBuffer   int // the number of events that a watcher may be behind; 0 means 1024

	// MinFree is the free space of the disk, in bytes, below which tasks are refused; 0
	// means 128 MiB, by which the files of the store may grow while no task is accepted.
	// Set less for a smaller disk.
	MinFree int64

	// MayLose is the length of the latest past that a crash of the process or of the
	// machine may undo. Changes are synced that much later, and callers do not wait for
	// it. After a crash, the store has the first changes up to some time: each call
	// completely or not at all. A crash during a sync also undoes the changes since that
	// sync began; if a full disk blocks it, changes are refused after 3 s. 0 loses nothing,
	// and the guarantees assume it.
	MayLose time.Duration

	// Logger receives errors that no call returns; nil discards them. An error that
	// repeats is logged once, and then once a minute with the number of repetitions.
	Logger *slog.Logger
}

// DefaultMinFree is the default of MinFree of [Config].
const DefaultMinFree = 128 << 20

func (c Config) withDefaults() Config {
	c.MinFree = cmp.Or(c.MinFree, DefaultMinFree)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = slog.New(logthrottle.New(c.Logger.Handler()))
	return c
}

func (c Config) validate() error {
	var errs []error
	for _, field := range []struct {
		name  string
		value int64
	}{
		{"MaxPayload", int64(c.MaxPayload)},
		{"MaxResult", int64(c.MaxResult)},
		{"MaxCheckpoint", int64(c.MaxCheckpoint)},
		{"WatchBuffer", int64(c.WatchBuffer)},
		{"MinFree", c.MinFree},
		{"MayLose", int64(c.MayLose)},
	} {
		if field.value < 0 {
			errs = append(errs, fmt.Errorf("%w: %s is %d; it is 0 for the default, or more",
				queue.ErrInvalid, field.name, field.value))
		}
	}
	return errors.Join(errs...)
}

// Store is a [queue.Store] in a directory. It is safe for concurrent use.
type Store struct {
	*machine.Machine
	rows  *rows
	clock clock.Steady
}

var _ queue.Store = (*Store)(nil)

// Open opens the store in a directory, which it creates if there is none. It reads the
// rows of all tasks, about a million in a second. Each takes about 125 bytes of memory. A
// program with millions of tasks should set a memory limit, see
// [runtime/debug.SetMemoryLimit]: otherwise the collector lets the heap grow to twice
// that. The caller closes the store.
//
// Errors: [queue.ErrInvalid] if cfg is not valid. [queue.ErrUnavailable] if another
// process has the directory open, this one may not write it, another user owns it or may
// write to it, its disk is full, or its files are damaged; the message has the reason and
// the remedy. Open may be called again; each disk error leaves about half a megabyte of
// memory in the process.
func Open(dir string, cfg Config) (*Store, error) {
	own, err := filepath.Abs(dir) // the process may change its working directory
	if err != nil {
		return nil, fmt.Errorf("%w: open the store in %s: %w", queue.ErrUnavailable, dir, err)
	}
	return open(own, cfg, vfs.Default, func(*pebble.Options) {})
}

// keepRows is the memory for rows of waiting tasks, in bytes.
const keepRows = 16 << 20

// open is Open in any file system, with other options for the database.
func open(dir string, cfg Config, fs vfs.FS, tune func(*pebble.Options)) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	r, err := openRows(dir, cfg, fs, tune)
	if err != nil {
		return nil, fmt.Errorf("%w: open the store in %s: %w", queue.ErrUnavailable, dir, err)
	}
	m, err := machine.Open(r, machine.Config{
		MaxPayload: cfg.MaxPayload, MaxResult: cfg.MaxResult, MaxCheckpoint: cfg.MaxCheckpoint,
		WatchBuffer: cfg.WatchBuffer, Epoch: r.epoch, Keep: keepRows, Room: r.room, Stalled: r.stall.Channel,
		Leases: r.leaseLog, Damaged: r.damaged, SetBack: r.setBack,
	})
	if err != nil {
		_ = r.Close() // Close fails for the same reason
		return nil, fmt.Errorf("%w: open the store in %s: %w", queue.ErrUnavailable, dir, ifDamaged(err))
	}
	r.failStop.setWaits(true)
	return &Store{m, r, clock.New()}, nil
}

// Clock returns the clock for the times of calls in this process, which was read when the store was
// opened. Setting the system's clock does not change it. [queue.New] uses it.
func (s *Store) Clock() clock.Steady { return s.clock }

// Close is as [queue.Store] says. It does not wait for space on a full disk: if changes
// cannot be written, it returns an error; no call has returned a result that is not in
// the directory. Then the rest of the database stays in memory, and the directory may be
// opened again, also by this process.
func (s *Store) Close() error {
	s.rows.failStop.setWaits(false)
	return s.Machine.Close()
}
