package receiver_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stintgo/stint/transfer/receiver"
)

// unfinished returns the name of the data of an upload that a closed receiver has left.
func unfinished(t *testing.T, data []byte) (s *site, name string) {
	t.Helper()
	s = open(t, receiver.Config{})
	url := s.create(2*len(data), "Upload-Metadata", filename("a"))
	s.want(s.patch(url, 0, data), 204)
	s.Close()
	return s, s.data(url)
}

// TestE4_DamagedJournalIsKept: Open keeps the data of an upload whose journal cannot be read,
// and logs it.
func TestE4_DamagedJournalIsKept(t *testing.T) {
	data := content(60, 1000)
	for _, c := range []struct {
		name   string
		damage func(journal []byte) []byte
	}{
		{"first byte", func(b []byte) []byte { b[0] ^= 1; return b }},
		{"first newline", func(b []byte) []byte { b[bytes.IndexByte(b, '\n')] ^= 1; return b }},
		{"a first line of 8 KiB", func(b []byte) []byte { return append(bytes.Repeat([]byte("x"), 8<<10), b...) }},
		{"a lane that does not exist", func(b []byte) []byte { return append(b, line(`{"drop":7}`)...) }},
		{"no upload", func(b []byte) []byte { return append(line(`{"v":1}`), b[bytes.IndexByte(b, '\n')+1:]...) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, name := unfinished(t, data)
			journal, err := os.ReadFile(name + ".log")
			if err != nil {
				t.Fatal(err)
			}
			journal = c.damage(journal)
			if err := os.WriteFile(name+".log", journal, 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			for range 2 {
				s = openIn(t, s.dir, receiver.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				s.Sweep(far())
				s.Close()
			}
			got, err := os.ReadFile(name + ".damaged")
			if err != nil || !bytes.Equal(got[:min(len(got), len(data))], data) {
				t.Errorf("of the data %d bytes are left, %v", len(got), err)
			}
			got, err = os.ReadFile(name + ".log.damaged")
			if err != nil || !bytes.Equal(got, journal) {
				t.Errorf("of the journal %d bytes are left, %v", len(got), err)
			}
			if n := strings.Count(log.String(), "damaged"); n == 0 || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("the log has %q", log.String())
			}
		})
	}
}

// TestE4_NewerJournalIsRefused: Open fails if a journal is of a version that it cannot read,
// also if fields have other types, and the files stay as they are.
func TestE4_NewerJournalIsRefused(t *testing.T) {
	for _, first := range []string{`{"v":2}`, `{"v":2,"file":[]}`, `{"file":[],"v":2}`} {
		s, name := unfinished(t, []byte("abc"))
		before := list(t, s.dir+"/.uploads")
		if err := os.WriteFile(name+".log", line(first), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := receiver.Open(s.dir, receiver.Config{}); err == nil || !strings.Contains(err.Error(), "version 2") {
			t.Errorf("Open with the journal %s returned %v", first, err)
		}
		if after := list(t, s.dir+"/.uploads"); !slices.Equal(before, after) {
			t.Errorf("Open left %q of %q", after, before)
		}
	}
}

// TestE4_TornCreationIsRemoved: an upload whose creation was not completed has no bytes.
func TestE4_TornCreationIsRemoved(t *testing.T) {
	whole := line(`{"v":1,"file":{"total":3,"created":"2026-01-01T00:00:00Z"}}`)
	for _, journal := range [][]byte{nil, whole[:20], whole, append(whole, whole[:20]...)} {
		s, name := unfinished(t, []byte("abc"))
		if err := os.WriteFile(name+".log", journal, 0o600); err != nil {
			t.Fatal(err)
		}
		openIn(t, s.dir, receiver.Config{}).Close()
		if left := list(t, s.dir+"/.uploads"); !slices.Equal(left, []string{"lock"}) {
			t.Errorf("with the journal %q, %q are left", journal, left)
		}
	}
}

// line returns a line of a journal.
func line(text string) []byte {
	return fmt.Appendf(nil, "%08x %s\n", receiver.CRC([]byte(text)), text)
}
