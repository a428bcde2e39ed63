package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// checkManifest refuses a database whose manifest has lost its end, or that has no manifest.
// Pebble takes a record of the manifest that cannot be read for its end, since a loss of
// power may leave one, and removes the tables that the rest of the manifest does not name.
//
// After a loss of power nothing is missing, because a log is removed when the record about its
// table is durable. So the first change in the logs continues the tables of the manifest: the
// sequence numbers of changes have no gap. The check changes nothing.
func checkManifest(files vfs.FS, dir string, db *pebble.DBDesc) error {
	if !db.Exists {
		if _, err := files.Stat(files.PathJoin(dir, tailFile)); err == nil {
			return errors.New("the marker of its manifest (marker.manifest.*) is missing")
		}
		return nil
	}
	m, err := readManifest(files, db.ManifestFilename)
	if err != nil {
		return err
	}
	logs, err := wal.Scan(wal.Dir{FS: files, Dirname: dir})
	if err != nil {
		return err
	}
	for _, log := range logs {
		if uint64(log.Num) < m.log {
			continue // it is in tables
		}
		if first, ok := firstChange(log); ok {
			if first > max(m.sequence+1, sequenceStart) {
				return fmt.Errorf("%s has lost its end: it knows of %d changes, and the first one of log %s has the number %d",
					files.PathBase(db.ManifestFilename), m.sequence, log.Num, first)
			}
			break
		}
	}
	return nil
}

// sequenceStart is the number of the first change of a new database.
const sequenceStart = 10

// firstChange returns the sequence number of the first change of a log, which may have none.
// Pebble reports a log that cannot be read.
func firstChange(log wal.LogicalLog) (sequence uint64, ok bool) {
	r := log.OpenForRead()
	defer r.Close() //nolint:errcheck // it was read only
	batch, _, err := r.NextRecord()
	if err != nil {
		return 0, false
	}
	var header [batchrepr.HeaderLen]byte
	if _, err := io.ReadFull(batch, header[:]); err != nil {
		return 0, false
	}
	return uint64(batchrepr.ReadSeqNum(header[:])), true
}

// manifest is the end of a manifest.
type manifest struct {
	log      uint64 // the logs before this one are in tables
	sequence uint64 // of the last change when it was written
}

func readManifest(files vfs.FS, name string) (m manifest, err error) {
	f, err := files.Open(name)
	if err != nil {
		return m, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	records := record.NewReader(f, 0)
	for {
		r, err := records.Next()
		var edit []byte
		if err == nil {
			edit, err = io.ReadAll(r)
		}
		switch {
		case errors.Is(err, io.EOF) || record.IsInvalidRecord(err):
			return m, nil
		case err != nil:
			return m, err
		}
		m.apply(edit)
	}
}

// The tags of the fields of a record, as LevelDB and RocksDB have them (db/version_edit.h).
// These come first, before the tables; numbers are unsigned varints.
const (
	tagComparator     = 1 // a length, and as many bytes
	tagLog            = 2
	tagNextFile       = 3
	tagSequence       = 4
	tagPreviousLog    = 9
	tagCreatedBacking = 105 // two numbers
	tagRemovedBacking = 106
)

// apply applies a record.
func (m *manifest) apply(edit []byte) {
	number := func() (n uint64) {
		n, size := binary.Uvarint(edit)
		edit = edit[max(size, 0):]
		return n
	}
	for len(edit) > 0 {
		switch number() {
		case tagComparator:
			edit = edit[min(number(), uint64(len(edit))):]
		case tagLog:
			m.log = number()
		case tagSequence:
			m.sequence = number()
			return
		case tagNextFile, tagPreviousLog, tagRemovedBacking:
			number()
		case tagCreatedBacking:
			number()
			number()
		default:
			return
		}
	}
}
