package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"

	"github.com/stintgo/stint/queue"
)

// Copy makes a copy of the store in a directory that is not there yet, while the
// store is in use: all that has been answered before the call, and each later
// change wholly or not at all. On the same file system it takes little room and
// time, because files that no longer change are shared. It blocks until the copy
// is durable.
//
// The copy is a store like any other, which does not know the workers of its tasks: those
// that ran while it was made wait there, or run out. Workers in other processes
// have to end before a copy takes the place of its store.
//
// Errors wrap [queue.ErrInvalid], if something is at dir; else the copy failed,
// what there was of it is removed, and the store goes on.
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
	dir = r.fs.PathJoin(dir) // without what could have it look like another
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
	// Another disk may be full or fail without any harm to the store.
	r.guard.spare(dir)
	defer r.guard.spare("")
	return r.guard.run(func() error { return r.db.Checkpoint(dir, pebble.WithFlushedWAL()) })
}

// isInside reports whether a path is somewhere below a directory, however the two
// are written. It does not follow links.
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
