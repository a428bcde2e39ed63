// Package filestore keeps durable tasks in a directory of this machine. What it
// has accepted survives kill -9 and the loss of power: every call is answered
// after its changes have been synced, and calls that come at the same time share
// a sync. [Config.MayLose] trades that for speed.
//
// A directory belongs to one process at a time. Nothing else may be kept in it,
// and it is copied, or moved, while no process has it open.
//
// Which tasks run is noted without a sync, which survives kill -9 but not the loss
// of power. When the directory is opened again, a task that ran in the process that
// was killed counts a crash, and one that runs in another process goes on there.
//
// When the disk has little room, tasks are refused with [queue.ErrUnavailable],
// while those that are there go on; when it has none, what changes them waits for
// room, and none starts whose start cannot be noted. A call does not wait with it: after
// 3 s it is answered with [queue.ErrUnavailable], and so are those that follow, at once,
// until there is room. What has been decided is done then; reading, and the leases of
// what runs, go on meanwhile. After any other error of the
// disk the store accepts nothing more, because what the disk holds then is unknown:
// it has to be closed, and opened again.
//
// A task that cannot be read, because a file is damaged, holds up no other task: see
// [queue.HoldDamaged]. It is there again when the directory has been put back from a
// copy; until then a store that is closed may not open, because that reads all tasks.
package filestore

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/internal/logthrottle"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// Config bounds what a store keeps. The zero value is a good default.
type Config struct {
	MaxPayload    int // bytes; 1 MiB if it is 0, as the others
	MaxResult     int
	MaxCheckpoint int
	WatchBuffer   int // events that a watcher may be behind; 1024 if it is 0

	// MinFree is the room, in bytes, that the disk must have for a task to be
	// accepted: 128 MiB if it is 0, which is what the files of the store may grow
	// by while nothing is accepted. On a disk that is smaller than that, set less.
	MinFree int64

	// MayLose is how much of the latest past a crash may undo, that of the process
	// as well as that of the machine: what has been answered is synced at most so
	// much later, and callers do not wait for it. All of what a call has done is
	// there afterwards or none of it, and nothing without what came before it. If
	// it is 0, which is what the guarantees are made for, nothing is lost.
	MayLose time.Duration

	// Logger receives what goes wrong behind the calls; nil discards it. An error that
	// repeats is logged once, and then once a minute with how often it did.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.MinFree = cmp.Or(c.MinFree, 128<<20)
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
	rows *rows
}

var _ queue.Store = (*Store)(nil)

// Open opens the store in a directory, which is made if there is none. It reads
// the rows of all tasks, about a million in a second. Each takes about 125 bytes of
// memory: a program with millions of them sets a memory limit, see
// [runtime/debug.SetMemoryLimit], or the collector lets the heap grow to twice
// that. The store has to be closed.
//
// Errors wrap [queue.ErrInvalid], if cfg makes no sense, or
// [queue.ErrUnavailable]: another process has the directory open, this one may
// not write it, another user owns it or may write to it, its disk is full, or its files
// are damaged. The message says which, and what to do. It may be tried again; half a
// megabyte stays with the process each time that the disk has failed.
func Open(dir string, cfg Config) (*Store, error) {
	return open(dir, cfg, vfs.Default, func(*pebble.Options) {})
}

// keepRows is how many bytes of rows of waiting tasks are kept in memory.
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
		WatchBuffer: cfg.WatchBuffer, Epoch: r.epoch, Keep: keepRows, Room: r.room, Stalled: r.stall.channel,
		Leases: r.leaseLog, Damaged: r.damaged, SetBack: r.setBack,
	})
	if err != nil {
		_ = r.Close() // which fails as that did, if it does
		return nil, fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, dir, err)
	}
	r.guard.patient(true)
	return &Store{m, r}, nil
}

// Close is as [queue.Store] says. It waits for no room on a disk: if what has
// been decided cannot be written, it returns an error, and no call has returned a result
// that is not in the directory. What is left of the database stays in memory
// in that case, and the directory may be opened again, also by the same process.
func (s *Store) Close() error {
	s.rows.guard.patient(false)
	return s.Machine.Close()
}
