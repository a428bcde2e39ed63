package receiver_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/transfer/receiver"
)

// TestPlain_ReceiptAfterRestart: a file that was merged is known after a restart, by its name
// and by its ID. If two files of one name were merged, the name stands for the later one.
func TestPlain_ReceiptAfterRestart(t *testing.T) {
	s := open(t, receiver.Config{})
	merge := func() string {
		t.Helper()
		return s.want(s.do("POST", "/files/a/merge", nil), 201).Header.Get("Location")
	}
	const files = 5 // the order of the journals is random
	var last string
	for i := range files {
		text := fmt.Sprintf("text %d", i)
		s.want(s.do("PUT", "/files/a/0?size=6", strings.NewReader(text[:3])), 201)
		s.want(s.do("PUT", "/files/a/3?size=6", strings.NewReader(text[3:])), 201)
		last = merge()
	}
	for range 2 {
		s.Close()
		s = openIn(t, s.dir, receiver.Config{})
		if got := s.want(s.do("GET", last, nil), 200).body; got != "text 4" {
			t.Errorf("the file has the content %q", got)
		}
		if got := s.want(s.do("GET", "/files/a/", nil), 200).body; !strings.Contains(got, `"merged":true`) {
			t.Errorf("the list of chunks is %s", got)
		}
		if again := merge(); again != last {
			t.Errorf("the merge after a restart made %s of %s", again, last)
		}
	}
	s.names("a", "a-2", "a-3", "a-4", "a-5")
	s.Sweep(far())
	s.want(s.do("GET", last, nil), 404)
}

// TestE4_BadByteInJournalIsNotSilent: a journal that a byte within has damaged is kept as it
// is, and logged. Its last line may be torn, which costs that line alone.
func TestE4_BadByteInJournalIsNotSilent(t *testing.T) {
	data := content(61, 4<<20)
	for _, c := range []struct {
		name    string
		damage  func(journal []byte) []byte
		damaged bool
	}{
		{"in the second line", func(b []byte) []byte { b[bytes.IndexByte(b, '\n')+20] ^= 1; return b }, true},
		{"the last newline but one", func(b []byte) []byte {
			b[bytes.LastIndexByte(b[:len(b)-1], '\n')] ^= 1
			return b
		}, true},
		{"in the last line", func(b []byte) []byte { b[len(b)-5] ^= 1; return b }, true},
		{"the last line is torn", func(b []byte) []byte { return b[:len(b)-5] }, false},
		{"a long line is torn", func(b []byte) []byte { return append(b, bytes.Repeat([]byte("x"), 20<<10)...) }, false},
		{"zeros follow", func(b []byte) []byte { return append(b, make([]byte, 20<<10)...) }, false},
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
			s = openIn(t, s.dir, receiver.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			kept, err := os.ReadFile(name + ".log.damaged")
			if got := err == nil && bytes.Equal(kept, journal); got != c.damaged {
				t.Errorf("the journal was kept: %t, want %t (%v)", got, c.damaged, err)
			}
			if got := strings.Contains(log.String(), "damaged"); got != c.damaged {
				t.Errorf("the log has %q", log.String())
			}
			status := s.tus("HEAD", s.url+filepath.Base(name), nil).StatusCode
			if known := status == 200; known == c.damaged {
				t.Errorf("HEAD has the status %d", status)
			}
		})
	}
}

// blocked is a disk whose sync of a number, and those after it, wait until the test ends.
func blocked(cfg receiver.Config, number int, release <-chan struct{}, reached chan<- struct{}) receiver.Config {
	once := sync.OnceFunc(func() { close(reached) })
	var syncs atomic.Int64
	return receiver.WithFault(cfg, func(op string, _ int) (int, error) {
		if op == "sync" && syncs.Add(1) >= int64(number) {
			once()
			<-release
		}
		return 0, nil
	})
}

// TestCloseIsBounded: Close does not wait for a disk that does not answer. The directory stays
// locked until the disk answers, and then the upload is complete.
func TestCloseIsBounded(t *testing.T) {
	t.Run("data", func(t *testing.T) { closeIsBounded(t, 1) })
	t.Run("journal", func(t *testing.T) { closeIsBounded(t, 2) }) // its sync holds the mutex of the file
}

func closeIsBounded(t *testing.T, blocks int) {
	t.Helper()
	cfg := receiver.Config{Finished: func(context.Context, receiver.Upload) error { return nil }}
	dir := filepath.Join(t.TempDir(), "uploads")
	synctest.Test(t, func(t *testing.T) {
		release, reached := make(chan struct{}), make(chan struct{})
		r, err := receiver.Open(dir, blocked(cfg, blocks, release, reached))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan int)
		go func() {
			req := httptest.NewRequestWithContext(t.Context(), "PUT", "/files/a", strings.NewReader("abc"))
			w := httptest.NewRecorder()
			r.ServeHTTP(w, req)
			ended <- w.Code
		}()
		<-reached
		if err := r.Close(); err == nil || !strings.Contains(err.Error(), "goes on") {
			t.Errorf("Close returned %v", err)
		}
		if other, err := receiver.Open(dir, receiver.Config{}); err == nil {
			other.Close()
			t.Error("a second receiver got the directory while the first one writes into it")
		}
		close(release)
		if code := <-ended; code != http.StatusCreated {
			t.Errorf("the request ended with %d", code)
		}
		synctest.Wait()
	})
	s := openIn(t, dir, receiver.Config{})
	s.file("a", []byte("abc"))
	s.clean()
}

// TestCloseEndsHashing: Close ends the verification of a file, which Open repeats.
func TestCloseEndsHashing(t *testing.T) {
	var s *site
	data := content(62, 8<<20)
	sum := sha256.Sum256(data)
	// Bytes that did not arrive in one process are hashed when the file is complete.
	meta := filename("a") + ",sha256 " + b64(hex.EncodeToString(sum[:]))
	s = open(t, receiver.Config{})
	url := s.create(len(data), "Upload-Metadata", meta)
	s.want(s.patch(url, 0, data[:1<<20]), 204)
	s.Close()

	var hashing atomic.Bool
	closing, closed := make(chan struct{}), make(chan error, 1)
	s = openIn(t, s.dir, receiver.WithFault(receiver.Config{}, func(op string, _ int) (int, error) {
		if op == "read" && hashing.CompareAndSwap(false, true) {
			close(closing)
			<-s.Closing() // in the middle of the hashing
		}
		return 0, nil
	}))
	go func() {
		<-closing
		closed <- s.Close()
	}()
	s.want(s.patch(url, 1<<20, data[1<<20:]), 503)
	if err := <-closed; err != nil {
		t.Errorf("Close returned %v", err)
	}
	s.names()
	s = openIn(t, s.dir, receiver.Config{})
	s.file("a", data)
	s.clean()
}

// TestE4_CrashBetweenLinkAndRemove: where a rename is a link and a removal, a crash in between
// leaves two names of one file. Open removes the one of the unfinished upload, and does not
// touch what the application has written since.
func TestE4_CrashBetweenLinkAndRemove(t *testing.T) {
	for _, freed := range []bool{false, true} {
		t.Run(fmt.Sprint("freed=", freed), func(t *testing.T) {
			var fails atomic.Bool
			fails.Store(true)
			var calls []string
			s := open(t, failing(receiver.Config{}, "rename", &fails))
			other := filepath.Join(s.dir, "a")
			if err := os.WriteFile(other, []byte("other"), 0o600); err != nil {
				t.Fatal(err)
			}
			url := s.create(3, "Upload-Metadata", filename("a"))
			s.want(s.patch(url, 0, []byte("abc")), 500)
			s.Close()
			place := filepath.Join(s.dir, "a-2")
			if err := os.Link(s.data(url), place); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(place, []byte("longer than before"), 0o600); err != nil { // the same file
				t.Fatal(err)
			}
			want := []string{"a", "a-2"}
			if freed {
				if err := os.Remove(other); err != nil {
					t.Fatal(err)
				}
				want = want[1:]
			}
			s = openIn(t, s.dir, receiver.Config{Finished: func(_ context.Context, u receiver.Upload) error {
				calls = append(calls, filepath.Base(u.Path))
				return nil
			}})
			s.want(s.patch(url, 3, nil), 204)
			s.names(want...)
			s.file("a-2", []byte("longer than before"))
			s.clean()
			s.Close()
			if !slices.Equal(calls, []string{"a-2"}) {
				t.Errorf("Finished was called for %q", calls)
			}
		})
	}
}
