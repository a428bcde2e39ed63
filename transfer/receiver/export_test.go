package receiver

import (
	"os"
	"time"
)

// For black-box tests.
var (
	CleanName     = cleanName
	ParseMetadata = parseMetadata
	ParseChecksum = parseChecksum
	ParseConcat   = parseConcat
	ParseDigest   = parseDigest
	ParseInteger  = parseInteger
	ParseBoolean  = parseBoolean
	ReadJournal   = readJournal
)

const RecordEvery = recordEvery

// Sweep removes what has expired at a time.
func (r *Receiver) Sweep(now time.Time) { r.sweep(now) }

// Reserved returns the bytes that count for the quota.
func (r *Receiver) Reserved() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reserved
}

// FailAllocate makes reserving disk space fail; nil ends that.
func (r *Receiver) FailAllocate(err error) {
	r.disk.allocate = allocate
	if err != nil {
		r.disk.allocate = func(*os.File, int64, int64) error { return err }
	}
}

// FailWriteAfter makes writes fail once so many bytes have been written.
func (r *Receiver) FailWriteAfter(n int64, err error) {
	r.disk.writeAt = func(f *os.File, p []byte, offset int64) (int, error) {
		if int64(len(p)) <= n {
			n -= int64(len(p))
			return f.WriteAt(p, offset)
		}
		fits, _ := f.WriteAt(p[:n], offset)
		n = 0
		return fits, err
	}
}

// FailNever ends FailWriteAfter.
func (r *Receiver) FailNever() { r.disk = newDisk() }
