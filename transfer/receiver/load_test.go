package receiver_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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

// TestE4_OpenOnAFullDisk: a full disk keeps the receiver from writing what it has found, and not from opening. The
// uploads are continued, and complete ones get their names when there is room.
func TestE4_OpenOnAFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	var full atomic.Bool
	cfg := receiver.WithFault(receiver.Config{}, func(op string, _ int) (int, error) {
		if op == "write" && full.Load() {
			return 0, syscall.ENOSPC
		}
		return 0, nil
	})
	data := content(63, 4<<20)
	var names atomic.Bool // of files cannot be given
	s := openIn(t, dir, failing(receiver.Config{}, "rename", &names))
	half := s.create(len(data), "Upload-Metadata", filename("half"))
	s.want(s.patch(half, 0, data[:2<<20]), 204)
	lost := s.create(len(data), "Upload-Metadata", filename("lost"))
	s.want(s.patch(lost, 0, data[:2<<20]), 204)
	names.Store(true)
	complete := s.create(len(data), "Upload-Metadata", filename("complete"))
	s.want(s.patch(complete, 0, data), 500)
	s.Close()
	for _, url := range []string{half, lost, complete} {
		rewriteBoot(t, s.data(url)+".log")
	}
	s.loseHalf(lost, 1<<20, 2<<20)

	full.Store(true)
	s = openIn(t, dir, cfg)
	if at := s.offset(half); at != 2<<20 {
		t.Errorf("the upload has the offset %d", at)
	}
	at := s.offset(lost)
	if at >= 2<<20 {
		t.Errorf("the upload that has lost bytes has the offset %d", at)
	}
	s.want(s.patch(half, 2<<20, data[:1000]), 507)
	s.names()
	full.Store(false)
	s.Sweep(time.Now())
	s.names("complete")
	s.file("complete", data)
	s.want(s.patch(lost, at, data[at:3<<20]), 204)
	s.Close()
	for _, url := range []string{half, lost} { // what was found is in the journal now
		rewriteBoot(t, s.data(url)+".log")
	}
	s = openIn(t, dir, receiver.Config{})
	if at := s.offset(lost); at != 3<<20 {
		t.Errorf("the upload that was continued has the offset %d", at)
	}
	s.want(s.patch(lost, 3<<20, data[3<<20:]), 204)
	s.file("lost", data)
}

// TestE4_BadUploadDoesNotStopOpen: an upload that cannot be opened is logged and kept for the next Open. The others are
// received.
func TestE4_BadUploadDoesNotStopOpen(t *testing.T) {
	data := content(64, 1000)
	s, name := unfinished(t, data)
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s = openIn(t, s.dir, receiver.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if !strings.Contains(log.String(), filepath.Base(name)) {
		t.Errorf("the log has %q", log.String())
	}
	s.want(s.tus("HEAD", s.url+filepath.Base(name), nil), 404)
	s.create(5)
	s.Close()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, s.dir, receiver.Config{})
	if at := s.offset(s.url + filepath.Base(name)); at != len(data) {
		t.Errorf("the upload has the offset %d", at)
	}
}

// TestOpen_ForeignDirectory: Open removes what uploads have left, and nothing else, as lost+found of a file system.
func TestOpen_ForeignDirectory(t *testing.T) {
	s := open(t, receiver.Config{})
	s.Close()
	work := filepath.Join(s.dir, ".uploads")
	foreign := filepath.Join(work, "lost+found", "1")
	if err := os.MkdirAll(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"", ".log.new"} {
		if err := os.WriteFile(filepath.Join(work, strings.Repeat("0", 32)+end), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	openIn(t, s.dir, receiver.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if got := list(t, work); !slices.Equal(got, []string{"lock", "lost+found"}) || log.Len() > 0 {
		t.Errorf("the directory has %q, the log %q", got, log.String())
	}
}

// TestE4_UnfinishedBesideAFinishedOne: the chunks of an unfinished file are those of its name after a restart, also if
// a finished file of that name seems to be newer, because the clock was set back in between.
func TestE4_UnfinishedBesideAFinishedOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	s := openIn(t, dir, receiver.Config{})
	s.want(s.do("PUT", "/files/f/0?size=4", strings.NewReader("four")), 201)
	s.want(s.do("POST", "/files/f/merge", nil), 201)
	s.Close()
	logs, err := filepath.Glob(filepath.Join(dir, ".uploads", "*.log"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	text, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	var ahead []byte // its creation is in the next century
	for of := range strings.Lines(string(text)) {
		const checksum = len("01234567 ")
		said := strings.TrimSuffix(of[checksum:], "\n")
		ahead = append(ahead, line(strings.ReplaceAll(said, `"created":"20`, `"created":"21`))...)
	}
	if err := os.WriteFile(logs[0], ahead, 0o600); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, dir, receiver.Config{})
	s.want(s.do("PUT", "/files/f/0?size=8", strings.NewReader("half")), 201)
	s.Close()
	for range 6 { // the order of the journals is that of random names
		s = openIn(t, dir, receiver.Config{})
		if a := s.do("GET", "/files/f/", nil); !strings.Contains(a.body, `"size":8`) {
			t.Fatalf("the unfinished file is %s", a.body)
		}
		s.Close()
	}
}
