package queue

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// ID identifies a task. It is a UUID of version 7 (RFC 9562): it begins with the time at
// which it was made, so IDs sort by age. The zero ID identifies no task.
type ID [16]byte

// IDs makes task IDs. The IDs of one IDs grow, also within a millisecond and if the clock
// is set back: the 12 bits after the milliseconds are a fraction of one, by method 3 of
// RFC 9562, section 6.2. The zero value is ready to use, and safe for concurrent use.
type IDs struct {
	// Random returns 64 random bits; nil is [rand.Uint64].
	Random func() uint64

	mu   sync.Mutex
	last uint64
}

// New returns a new ID with the time now.
func (g *IDs) New(now time.Time) (id ID) {
	const perMilli = int64(time.Millisecond)
	ns := now.UnixNano()
	stamp := uint64(ns/perMilli)<<12 | uint64(ns%perMilli)<<12/uint64(perMilli)
	random := rand.Uint64
	if g.Random != nil {
		random = g.Random
	}
	g.mu.Lock()
	stamp = max(stamp, g.last+1)
	g.last = stamp
	bits := random()
	g.mu.Unlock()
	const version, variant = 7 << 12, 1 << 63
	binary.BigEndian.PutUint64(id[:], stamp>>12<<16|version|stamp&0xfff)
	binary.BigEndian.PutUint64(id[8:], bits>>2|variant)
	return id
}

const idLen = 36

// idGroup is a group of digits in the text of a UUID: its bytes, and its offset.
type idGroup struct{ from, to, at int }

func idGroups() [5]idGroup {
	return [...]idGroup{{0, 4, 0}, {4, 6, 9}, {6, 8, 14}, {8, 10, 19}, {10, 16, 24}}
}

// ParseID parses the text of an ID, in lower or upper case.
func ParseID(text string) (ID, error) {
	id, ok := parseID(text)
	if !ok {
		return ID{}, fmt.Errorf("%w: %.40q is not a task ID, which looks like 01890a5d-ac96-774b-bcce-b302099a8057",
			ErrInvalid, text)
	}
	return id, nil
}

func parseID(text string) (id ID, ok bool) {
	if len(text) != idLen {
		return id, false
	}
	for _, g := range idGroups() {
		if g.at > 0 && text[g.at-1] != '-' {
			return id, false
		}
		if _, err := hex.Decode(id[g.from:g.to], []byte(text[g.at:g.at+2*(g.to-g.from)])); err != nil {
			return id, false
		}
	}
	return id, true
}

// String returns the usual text of a UUID.
func (id ID) String() string {
	text, _ := id.AppendText(nil)
	return string(text)
}

// AppendText appends the text of the ID.
func (id ID) AppendText(b []byte) ([]byte, error) {
	for i, g := range idGroups() {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, id[g.from:g.to])
	}
	return b, nil
}

// IsZero reports whether the ID is zero.
func (id ID) IsZero() bool { return id == ID{} }

// Time returns when the ID was made, in milliseconds.
func (id ID) Time() time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:]) >> 16))
}

// MarshalText returns the text of String.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText parses the text as ParseID does.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(string(text))
	return err
}
