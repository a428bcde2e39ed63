package filestore

import (
	"context"
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue/internal/machine"
)

// OpenIn is Open in another file system, with a database so small that a few
// hundred tasks keep it flushing and compacting.
func OpenIn(fs vfs.FS, dir string, cfg Config) (*Store, error) {
	return open(dir, cfg, fs, func(o *pebble.Options) {
		o.MemTableSize, o.CacheSize, o.L0CompactionThreshold = 16<<10, 1<<20, 2
		o.FS.(*opFS).ahead = 8 << 10
	})
}

// Intercept passes all operations that change files of fs through do.
func Intercept(fs vfs.FS, do func(op, path string, run func() error) error) vfs.FS {
	return &opFS{fs, do, 0}
}

// FillLogs fills logs so many bytes ahead of what is written to them.
func FillLogs(fs vfs.FS, ahead int64) vfs.FS {
	return &opFS{fs, func(_, _ string, run func() error) error { return run() }, ahead}
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

// Compact brings all tables into order, so that for a while none comes or goes.
func (s *Store) Compact(ctx context.Context) error {
	return s.rows.db.Compact(ctx, []byte{0}, []byte{0xff}, false)
}

// Rows and files of the directory itself.
const (
	RowFormat  = rowFormat
	TailFile   = tailFile
	StartsFile = startsFile
)

// OpenStarts opens the file of starts alone.
func OpenStarts(fs vfs.FS, dir string) (machine.Starts, error) { return openStarts(fs, dir) }

// PlaceSize is that of a start.
const PlaceSize = placeSize

// EncodeStart and DecodeStart are how a start is written down.
func EncodeStart(s machine.Start) (b [placeSize]byte) {
	encodeStart(&b, &s)
	return b
}

func DecodeStart(b [placeSize]byte) (machine.Start, bool) { return decodeStart(&b) }

// WithSum is some content of a place with the right checksum.
func WithSum(content []byte) []byte {
	var b [placeSize]byte
	copy(b[:], content)
	binary.BigEndian.PutUint32(b[:], startSum(&b))
	return b[:]
}
