package receiver

import (
	"hash/crc32"
	"time"
)

// For black-box tests.
var (
	CleanName     = cleanName
	ParseMetadata = parseMetadata
	ParseConcat   = parseConcat
	ParseDigest   = parseDigest
	ParseInteger  = parseInteger
	ParseBoolean  = parseBoolean
	ReadJournal   = readJournal
	ParsePlace    = parsePlace
)

const RecordEvery = recordEvery

// Sweep removes what has expired at a time, and calls Finished where it has failed.
func (r *Receiver) Sweep(now time.Time) {
	s := &sweeper{r.store}
	s.sweep(now)
	s.announce(now)
}

// Closing is closed when Close begins.
func (r *Receiver) Closing() <-chan struct{} { return r.store.ctx.Done() }

// Reserved returns the bytes that count for the quota.
func (r *Receiver) Reserved() int64 {
	q := &r.store.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reserved
}

// Unfinished returns the number of unfinished uploads.
func (r *Receiver) Unfinished() int {
	q := &r.store.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.uploads
}

// WithFault returns a configuration with faults of the disk: see disk.fault.
func WithFault(cfg Config, fault func(op string, bytes int) (done int, err error)) Config {
	cfg.disk.fault = fault
	return cfg
}

// WithInterval returns a configuration with another time between interim answers.
func WithInterval(cfg Config, interval time.Duration) Config {
	cfg.interval = interval
	return cfg
}

// WithUploadsMax returns a configuration with another number of unfinished uploads.
func WithUploadsMax(cfg Config, most int) Config {
	cfg.uploadsMax = most
	return cfg
}

// CRC returns the checksum of a journal's line.
func CRC(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// PlaceIsBad reports whether a place cannot be one of a part.
func PlaceIsBad(p place) bool { return p.offset < 0 || p.offset > p.total || !isGroup(p.group) }

// Line returns a line of a journal.
func Line() []byte {
	b, err := record{Reach: &reachRecord{To: 5, CRC: 7}}.appendTo(nil)
	if err != nil {
		panic(err)
	}
	return b
}

// ParseChecksum parses an Upload-Checksum, and reports whether it is that of an empty body.
func ParseChecksum(text string) (ofNothing bool, err error) {
	c, err := parseChecksum(text)
	return c != nil && c.matches(0), err
}
