// Package filestore keeps durable tasks in a directory of this machine. What it
// has accepted survives kill -9 and the loss of power: every call is answered
// after its changes have been synced, and calls that come at the same time share
// a sync.
//
// A directory belongs to one process at a time. Nothing else may be kept in it,
// and it is copied, or moved, while no process has it open.
//
// When the disk has little room, tasks are refused with [queue.ErrUnavailable],
// while those that are there go on; when it has none, what changes them waits for
// room. After any other error of the disk the store accepts nothing more, because
// what the disk holds then is unknown: the program has to be started again.
package filestore

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

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
	// by while nothing is accepted. A disk that is smaller than that needs less.
	MinFree int64

	// Logger is told what goes wrong behind the calls; nil discards it.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.MinFree = cmp.Or(c.MinFree, 128<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
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
// the rows of all unfinished tasks, and takes some seconds for millions of them.
// The store has to be closed.
//
// Errors wrap [queue.ErrInvalid], if cfg makes no sense, or
// [queue.ErrUnavailable]: another process has the directory open, this one may
// not write it, or its files are damaged. The message says which, and what to do.
func Open(dir string, cfg Config) (*Store, error) {
	return open(dir, cfg, vfs.Default, func(*pebble.Options) {})
}

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
		WatchBuffer: cfg.WatchBuffer, Epoch: r.epoch, Room: r.room,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, dir, err), r.Close())
	}
	r.guard.patient(true)
	return &Store{m, r}, nil
}

// Close is as [queue.Store] says. It waits for no room on a disk: if what has
// been decided cannot be written it says so, and then nothing was promised to
// anybody that is not in the directory. The lock of the directory stays with the
// process in that case.
func (s *Store) Close() error {
	s.rows.guard.patient(false)
	return s.Machine.Close()
}
