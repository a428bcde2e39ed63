package filestore

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// OpenIn is Open in another file system, with a database so small that a few
// hundred tasks keep it flushing and compacting.
func OpenIn(fs vfs.FS, dir string, cfg Config) (*Store, error) {
	return open(dir, cfg, fs, func(o *pebble.Options) {
		o.MemTableSize, o.CacheSize, o.L0CompactionThreshold = 16<<10, 1<<20, 2
	})
}

// Intercept passes all operations that change files of fs through do.
func Intercept(fs vfs.FS, do func(op, path string, run func() error) error) vfs.FS {
	return &opFS{fs, do}
}

// Operations that change files, as interceptors are told.
const (
	OpCreate = opCreate
	OpWrite  = opWrite
	OpSync   = opSync
)

// Set writes a row of the directory itself.
func (s *Store) Set(key string, value []byte) error {
	return s.rows.db.Set([]byte(key), value, pebble.Sync)
}

// Rows and files of the directory itself.
const (
	RowFormat = rowFormat
	TailFile  = tailFile
)
