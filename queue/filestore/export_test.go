package filestore

import (
	"context"
	"encoding/binary"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue/internal/lease"
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

// OpenOn is Open in another file system.
func OpenOn(fs vfs.FS, dir string, cfg Config) (*Store, error) {
	return open(dir, cfg, fs, func(*pebble.Options) {})
}

// Intercept passes all operations that change files of fs through do.
func Intercept(fs vfs.FS, do func(op, path string, run func() error) error) vfs.FS {
	return &opFS{fs, do, 0}
}

// FillLogs returns a file system whose logs have ahead zero bytes behind their content.
func FillLogs(fs vfs.FS, ahead int64) vfs.FS {
	return &opFS{fs, func(_, _ string, run func() error) error { return run() }, ahead}
}

// Operations that change files, as interceptors receive them.
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
	RowFormat    = rowFormat
	TailFile     = tailFile
	LeaseLogFile = leaseLogFile
)

// OpenLeaseLog opens the lease log alone.
func OpenLeaseLog(fs vfs.FS, dir string) (machine.LeaseStorage, error) { return openLeaseLog(fs, dir) }

// SlotSize is the size of a slot of the lease log.
const SlotSize = lease.Size

// EncodeEntry encodes a slot of the lease log.
func EncodeEntry(e machine.LeaseEntry) (b [SlotSize]byte) {
	lease.Encode(&b, &e)
	return b
}

// DecodeEntry decodes a slot of the lease log.
func DecodeEntry(b [SlotSize]byte) (machine.LeaseEntry, bool) { return lease.Decode(&b) }

// WithChecksum returns a slot with some content and the right checksum.
func WithChecksum(content []byte) []byte {
	var b [SlotSize]byte
	copy(b[:], content)
	binary.BigEndian.PutUint32(b[:], crc32.Checksum(b[4:], crc32.MakeTable(crc32.Castagnoli)))
	return b[:]
}
