package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tailFile has the number of the last synced batch, in eight bytes, and its checksum
// (CRC-32C) in four.
const (
	tailFile = "stint.tail"
	tailSize = 8 + 4
)

// tail is the file tailFile. Pebble takes a log that was truncated or deleted for one
// that ended there; the number shows that there were more batches.
//
// It is written after the batch is synced, and is not synced itself. So after a loss of
// power it may be older than the log, which does no harm, but never newer.
type tail struct {
	file vfs.File
	log  *slog.Logger
	said bool // a write error has been logged
}

// openTail opens the file, and refuses a log that ends before the recorded batch.
func openTail(fs vfs.FS, dir string, last uint64, log *slog.Logger) (*tail, error) {
	path := fs.PathJoin(dir, tailFile)
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	synced, err := readTail(f)
	if err == nil && synced > last {
		err = fmt.Errorf("the last %d batches are missing: a log was cut short, or is gone; "+
			"restore the directory from a copy, or, to go on without what they held, remove %s", synced-last, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &tail{file: f, log: log}, nil
}

// readTail returns the recorded number, or 0 if there is none: the file is new, or its
// write was torn by a loss of power.
func readTail(f vfs.File) (uint64, error) {
	var b [tailSize]byte
	if _, err := f.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if binary.BigEndian.Uint32(b[8:]) != tailSum(b[:8]) {
		return 0, nil
	}
	return binary.BigEndian.Uint64(b[:8]), nil
}

func tailSum(number []byte) uint32 { return crc32.Checksum(number, crc32.MakeTable(crc32.Castagnoli)) }

// set records that a batch is synced. An error is only logged, because the file is only a
// check.
func (t *tail) set(batch uint64) {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, tailSize), batch)
	b = binary.BigEndian.AppendUint32(b, tailSum(b))
	if _, err := t.file.WriteAt(b, 0); err != nil && !t.said {
		t.said = true
		t.log.Warn("the end of the log is no longer recorded, so a log that has lost its end may go unnoticed",
			slog.String("file", tailFile), slog.String("error", err.Error()))
	}
}

func (t *tail) close() error { return t.file.Close() }
