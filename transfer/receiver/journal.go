package receiver

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"time"

	"github.com/stintgo/stint"
)

// journalVersion is the version of the format of journals. A change that an older program
// would misread needs another number; fields may be added without.
const journalVersion = 1

// castagnoli is the polynomial of CRC32C (RFC 3720), which processors compute.
//
//nolint:gochecknoglobals // a table
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is one line of a journal: the CRC32C of the JSON in hexadecimal, a space, the
// JSON, a newline. A line that was torn by a crash ends the journal. Each record sets
// the fields of one event. Lanes are numbered in the order of their records.
type record struct {
	Version int            `json:"v,omitempty"`    // of the first record
	Boot    string         `json:"boot,omitempty"` // since when pages are in memory; data before it has been verified
	File    *fileRecord    `json:"file,omitempty"` // of the first record
	Lane    *laneRecord    `json:"lane,omitempty"` // a lane begins
	Length  *lengthRecord  `json:"length,omitempty"`
	Reach   *reachRecord   `json:"reach,omitempty"`
	Drop    *int           `json:"drop,omitempty"` // the number of a lane that was cancelled
	Concat  *concatRecord  `json:"concat,omitempty"`
	Absorb  int            `json:"absorb,omitempty"` // how many parts the file has now, all synced
	Publish *publishRecord `json:"publish,omitempty"`
	Done    *time.Time     `json:"done,omitempty"` // when Finished has returned
}

// fileRecord begins a file.
type fileRecord struct {
	Group    string         `json:"group,omitempty"` // see [file]
	Total    int64          `json:"total"`           // bytes, or -1
	Key      string         `json:"key,omitempty"`
	Priority stint.Priority `json:"priority,omitempty"`
	Created  time.Time      `json:"created"`
}

// laneRecord begins a lane: a range of the file that is written from its start to its end.
type laneRecord struct {
	ID         string            `json:"id,omitempty"` // empty for chunks of the plain protocol
	Start      int64             `json:"start"`
	Length     int64             `json:"length"` // bytes, or -1
	Partial    bool              `json:"partial,omitempty"`
	Ordered    bool              `json:"ordered,omitempty"`    // a request finishes it, not its last byte
	OneRequest bool              `json:"oneRequest,omitempty"` // one request sends all of it, or the upload is given up
	Metadata   map[string]string `json:"metadata,omitempty"`
}

// lengthRecord gives a lane its length.
type lengthRecord struct {
	Lane   int   `json:"lane"`
	Length int64 `json:"length"`
}

// reachRecord says that a lane has reached an offset from its start, and what the bytes
// since the offset before it are. After an offset that is less than the one before, the
// records since then no longer count.
type reachRecord struct {
	Lane int    `json:"lane"`
	To   int64  `json:"to"`
	CRC  uint32 `json:"crc"`
}

// concatRecord says which parts become the file, in order. The first one is the file.
type concatRecord struct {
	Final laneRecord `json:"final"`
	Parts []string   `json:"parts"`
	Ends  []int64    `json:"ends"` // where each ends in the file
}

// publishRecord says under which name the complete file is going to be found. The last one
// counts.
type publishRecord struct {
	Name string      `json:"name"`
	Size int64       `json:"size"`
	As   *laneRecord `json:"as,omitempty"` // the upload of a group's whole file
	// What tells the file from another one that has its name later. Zero: not known.
	Modified time.Time `json:"modified,omitzero"`
	Inode    uint64    `json:"inode,omitempty"`
}

// isOf reports whether a file is the one that was published, and has not been changed.
func (p *publishRecord) isOf(info fs.FileInfo) bool {
	return info.Size() == p.Size &&
		(p.Modified.IsZero() || info.ModTime().Equal(p.Modified)) &&
		(p.Inode == 0 || inode(info) == p.Inode)
}

// appendTo appends the record's line to b.
func (rec record) appendTo(b []byte) ([]byte, error) {
	text, err := json.Marshal(rec)
	if err != nil {
		return b, err
	}
	return fmt.Appendf(b, "%08x %s\n", crc32.Checksum(text, castagnoli), text), nil
}

// parseRecord reads a line without its newline. If a field has another type than it should
// have, the others are in the record with the error.
func parseRecord(line []byte) (rec record, err error) {
	sum, text, ok := bytes.Cut(line, []byte(" "))
	var crc [4]byte
	if n, err := hex.Decode(crc[:], sum[:min(len(sum), 2*len(crc))]); !ok || n != len(crc) || err != nil {
		return rec, errors.New("no checksum")
	}
	want := uint32(crc[0])<<24 | uint32(crc[1])<<16 | uint32(crc[2])<<8 | uint32(crc[3])
	if len(sum) != 2*len(crc) || crc32.Checksum(text, castagnoli) != want {
		return rec, errors.New("wrong checksum")
	}
	err = json.Unmarshal(text, &rec)
	return rec, err
}

// readJournal returns the records of a journal, and where the last whole one ends.
func readJournal(r io.Reader) (records []record, end int64, err error) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return records, end, nil
		}
		if err != nil {
			return nil, 0, err
		}
		rec, err := parseRecord(line[:len(line)-1])
		// A torn record is where the journal ends. Newer fields may be of other types.
		if err != nil && rec.Version <= journalVersion {
			return records, end, nil
		}
		records = append(records, rec)
		end += int64(len(line))
	}
}

// encode returns the lines of a whole journal.
func encode(records ...record) (b []byte, err error) {
	for _, rec := range records {
		if b, err = rec.appendTo(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}
