package receiver_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/transfer/receiver"
)

// TestDownload_AnotherFileOfTheName: an ID is one of a file, and not of whatever has the
// file's name later.
func TestDownload_AnotherFileOfTheName(t *testing.T) {
	s := open(t, receiver.Config{})
	upload := func(text string) string {
		url := s.create(len(text), "Upload-Metadata", filename("a"))
		s.want(s.patch(url, 0, []byte(text)), 204)
		return url
	}
	first := upload("one")
	name := filepath.Join(s.dir, "a")
	aside := filepath.Join(t.TempDir(), "a")
	if err := os.Rename(name, aside); err != nil {
		t.Fatal(err)
	}
	second := upload("two") // of the same size
	for range 2 {
		s.want(s.do("GET", first, nil), 410)
		s.want(s.do("HEAD", first, nil), 410)
		if got := s.want(s.do("GET", second, nil), 200).body; got != "two" {
			t.Errorf("the second upload has the content %q", got)
		}
		s.Close()
		s = openIn(t, s.dir, receiver.Config{})
	}
	if err := os.Rename(aside, name); err != nil {
		t.Fatal(err)
	}
	if got := s.want(s.do("GET", first, nil), 200).body; got != "one" {
		t.Errorf("the first upload has the content %q after it has been moved back", got)
	}
	s.want(s.do("GET", second, nil), 410)
	if err := os.Chtimes(name, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	s.want(s.do("GET", first, nil), 410)
	// A named pipe, which nothing opens for writing.
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	s.want(s.do("GET", first, nil), 410)
}

// TestDownload_Close: Close ends a download whose client does not read.
func TestDownload_Close(t *testing.T) {
	s := open(t, receiver.Config{})
	content := make([]byte, 32<<20) // more than the buffers of a connection
	url := s.create(len(content))
	s.want(s.patch(url, 0, content), 204)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(s.url, "/files/")+url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if n, err := io.Copy(io.Discard, answer.Body); err == nil {
		t.Errorf("the client gets all %d bytes", n)
	}
}
