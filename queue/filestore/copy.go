package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stintgo/stint/queue"
)

// Copy copies the store to a directory that does not exist yet, while the store is in
// use. The copy has all changes that were answered before the call, and each later change
// completely or not at all. On the same file system it takes little space and time,
// because files that no longer change are shared. Copy blocks until the copy is durable.
//
// The copy is a store that does not know the workers of its tasks: running tasks wait
// there, or run until their leases expire. Workers in other processes must end before a
// copy replaces its store.
//
// Errors: [queue.ErrInvalid] if something is at dir. After any other error the copy has
// failed, its files are removed, and the store continues.
func (s *Store) Copy(dir string) error {
	err := s.rows.copyTo(dir)
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w: choose another directory: %w", queue.ErrInvalid, err)
	}
	if err != nil {
		return fmt.Errorf("copy the store in %s: %w", s.rows.dir, err)
	}
	return nil
}

func (r *rows) copyTo(dir string) error {
	r.closing.Lock()
	defer r.closing.Unlock()
	if r.gone {
		return queue.ErrClosed
	}
	dir = r.fs.PathJoin(dir) // cleaned, so that paths can be compared
	inside, err := isInside(r.dir, dir)
	switch {
	case err != nil:
		return err
	case inside:
		return fmt.Errorf("%w: %s is inside the store: choose another directory", queue.ErrInvalid, dir)
	}
	if err := makeDir(r.fs, r.fs.PathDir(dir)); err != nil {
		return err
	}
	// Another disk may be full or fail without harm to the store.
	r.failStop.exempt(dir)
	defer r.failStop.exempt("")
	return r.failStop.run(func() error { return r.db.Checkpoint(dir, pebble.WithFlushedWAL()) })
}

// isInside reports whether a path is below a directory, however the two are written. It
// does not follow links.
func isInside(dir, path string) (bool, error) {
	from, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return false, err
	}
	way, err := filepath.Rel(from, to)
	return err == nil && way != "." && filepath.IsLocal(way), nil
}
