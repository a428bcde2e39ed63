package lease_test

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/lease"
	"github.com/stintgo/stint/queue/internal/machine"
)

// full returns an entry that sets all fields.
func full() machine.LeaseEntry {
	return machine.LeaseEntry{
		ID: queue.ID{1, 15: 2}, Seq: 1 << 40, Token: 3<<40 + 1, At: time.Unix(1e9, 7).UTC(),
		Worker: "host-1-a", Remote: time.Minute,
	}
}

// The bytes that Encode counts are enough to decode an entry, whatever was in the array.
func TestEncode(t *testing.T) {
	long := strings.Repeat("n", 199)
	for name, want := range map[string]string{"": "", "host-1-a": "host-1-a", long + "n": long + "n", long + "ä": long} {
		e := full()
		e.Worker = name
		var b, short [lease.Size]byte
		for i := range b {
			b[i] = 0xff
		}
		copy(short[:], b[:lease.Encode(&b, &e)])
		e.Worker = want
		for _, b := range [][lease.Size]byte{b, short} {
			if got, ok := lease.Decode(&b); !ok || got != e {
				t.Errorf("the entry of %q is decoded as %+v, %t; want %+v", name, got, ok, e)
			}
		}
	}
}

// withChecksum returns an array with some content and the right checksum.
func withChecksum(content []byte) (b [lease.Size]byte) {
	copy(b[:], content)
	binary.BigEndian.PutUint32(b[:], crc32.Checksum(b[4:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// What is damaged, of another version or empty is no entry.
func TestDecode_NoEntry(t *testing.T) {
	var good [lease.Size]byte
	e := full()
	lease.Encode(&good, &e)
	for i := range good {
		b := good
		if b[i] ^= 0x10; decodes(&b) {
			t.Errorf("with byte %d wrong there is an entry", i)
		}
	}
	for name, change := range map[string]func(b []byte){
		"version 0": func(b []byte) { b[4] = 0 },
		"version 2": func(b []byte) { b[4] = 2 },
		"long name": func(b []byte) { b[5] = 201 },
		"no token":  func(b []byte) { clear(b[32:40]) },
	} {
		b := good
		change(b[:])
		if b = withChecksum(b[:]); decodes(&b) {
			t.Errorf("%s: there is an entry", name)
		}
	}
	if zero := [lease.Size]byte{}; decodes(&zero) {
		t.Error("zeros are an entry")
	}
}

func decodes(b *[lease.Size]byte) bool {
	_, ok := lease.Decode(b)
	return ok
}

// row returns entries one after the other.
func row(entries ...machine.LeaseEntry) (content []byte) {
	for i := range entries {
		var b [lease.Size]byte
		used := lease.Encode(&b, &entries[i])
		content = append(content, b[:used]...)
	}
	return content
}

func decodeRow(content []byte) (entries []machine.LeaseEntry) {
	lease.DecodeRow(content, func(e machine.LeaseEntry) { entries = append(entries, e) })
	return entries
}

// A row has the entries before the first bytes that are none.
func TestDecodeRow(t *testing.T) {
	all := []machine.LeaseEntry{full(), full(), full()}
	all[0].Worker, all[2].Worker = "", strings.Repeat("n", 200)
	good := row(all...)
	if got := decodeRow(good); !slices.Equal(got, all) {
		t.Errorf("the row is decoded as %+v", got)
	}
	first, second := len(row(all[0])), len(row(all[:2]...))
	for n := range good {
		want := all[:0]
		switch {
		case n >= second:
			want = all[:2]
		case n >= first:
			want = all[:1]
		}
		if got := decodeRow(good[:n]); !slices.Equal(got, want) {
			t.Errorf("%d bytes of the row are decoded as %d entries, want %d", n, len(got), len(want))
		}
	}
	damaged := slices.Clone(good)
	damaged[first+10] ^= 1
	if got := decodeRow(damaged); !slices.Equal(got, all[:1]) {
		t.Errorf("a row whose second entry is damaged is decoded as %+v", got)
	}
}

// FuzzDecodeRow decodes any content: the entries are encoded and decoded as the same ones.
func FuzzDecodeRow(f *testing.F) {
	f.Add(row(full(), full()))
	f.Add(row(full())[:60])
	f.Add(slices.Concat(row(full()), make([]byte, 100)))
	f.Add(make([]byte, 300))
	f.Fuzz(func(t *testing.T, content []byte) {
		entries := decodeRow(content)
		if again := decodeRow(row(entries...)); !slices.Equal(again, entries) {
			t.Errorf("%+v is encoded and decoded as %+v", entries, again)
		}
	})
}

// FuzzDecode decodes any content, also with the right checksum: what is decoded is encoded
// and decoded as the same entry.
func FuzzDecode(f *testing.F) {
	var b [lease.Size]byte
	e := full()
	used := lease.Encode(&b, &e)
	f.Add(b[:])
	f.Add(b[:used])
	f.Add([]byte{4: 1, 5: 255})
	f.Add([]byte{4: 1, 5: 200, 39: 1, 55: 9, 255: 'n'})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, content []byte) {
		var plain [lease.Size]byte
		copy(plain[:], content)
		for _, b := range [][lease.Size]byte{plain, withChecksum(content)} {
			e, ok := lease.Decode(&b)
			if !ok {
				continue
			}
			lease.Encode(&b, &e)
			if again, ok := lease.Decode(&b); !ok || again != e {
				t.Errorf("%+v is encoded and decoded as %+v, %t", e, again, ok)
			}
		}
	})
}
