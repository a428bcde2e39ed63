package receiver_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/transfer/receiver"
)

// site is a receiver behind a server on the loopback interface.
type site struct {
	*receiver.Receiver
	tb  testing.TB
	dir string
	url string // with the path of the handler
}

func open(tb testing.TB, cfg receiver.Config) *site {
	tb.Helper()
	return openIn(tb, filepath.Join(tb.TempDir(), "uploads"), cfg)
}

func openIn(tb testing.TB, dir string, cfg receiver.Config) *site {
	tb.Helper()
	r, err := receiver.Open(dir, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	r.Sweep(time.Now()) // waits for the one that Open has begun, which replaces journals by receipts
	server := httptest.NewServer(r)
	tb.Cleanup(func() {
		r.Close()
		server.Close()
	})
	return &site{Receiver: r, tb: tb, dir: dir, url: server.URL + "/files/"}
}

// do sends a request to a URL or to a path of the site, and returns the answer with its
// body read.
func (s *site) do(method, url string, body io.Reader, h ...string) answer {
	s.tb.Helper()
	if !strings.HasPrefix(url, "http") {
		url = strings.TrimSuffix(s.url, "/files/") + url
	}
	req, err := http.NewRequestWithContext(s.tb.Context(), method, url, body)
	if err != nil {
		s.tb.Fatal(err)
	}
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		s.tb.Fatal(err)
	}
	return answer{Response: resp, body: string(content)}
}

type answer struct {
	*http.Response
	body string
}

// want fails the test unless the answer has a status and headers.
func (s *site) want(a answer, status int, h ...string) answer {
	s.tb.Helper()
	if a.StatusCode != status {
		s.tb.Fatalf("%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL, a.StatusCode, status, a.body)
	}
	for i := 0; i < len(h); i += 2 {
		if got := a.Header.Get(h[i]); got != h[i+1] {
			s.tb.Fatalf("%s %s: %s is %q, want %q", a.Request.Method, a.Request.URL, h[i], got, h[i+1])
		}
	}
	return a
}

// tus sends a request of tus.
func (s *site) tus(method, url string, body io.Reader, h ...string) answer {
	s.tb.Helper()
	return s.do(method, url, body, append([]string{"Tus-Resumable", "1.0.0"}, h...)...)
}

// create creates an upload by tus, and returns its path.
func (s *site) create(size int, h ...string) string {
	s.tb.Helper()
	h = append([]string{"Upload-Length", strconv.Itoa(size)}, h...)
	return s.want(s.tus("POST", s.url, nil, h...), http.StatusCreated).Header.Get("Location")
}

// patch appends bytes to an upload by tus.
func (s *site) patch(url string, offset int, body []byte, h ...string) answer {
	s.tb.Helper()
	h = append([]string{"Content-Type", "application/offset+octet-stream", "Upload-Offset", strconv.Itoa(offset)}, h...)
	return s.tus("PATCH", url, bytes.NewReader(body), h...)
}

// offset returns the offset of an upload by tus.
func (s *site) offset(url string) int {
	s.tb.Helper()
	n, err := strconv.Atoi(s.want(s.tus("HEAD", url, nil), http.StatusOK).Header.Get("Upload-Offset"))
	if err != nil {
		s.tb.Fatal(err)
	}
	return n
}

// file fails the test unless a finished file has the content.
func (s *site) file(name string, want []byte) {
	s.tb.Helper()
	got, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.tb.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		s.tb.Fatalf("%s has %d bytes that differ from the %d that were sent", name, len(got), len(want))
	}
}

// names fails the test unless the directory has exactly these finished files.
func (s *site) names(want ...string) {
	s.tb.Helper()
	got := []string{}
	for _, name := range list(s.tb, s.dir) {
		if name != ".uploads" {
			got = append(got, name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.tb.Fatalf("the finished files are %q, want %q", got, want)
	}
}

// orphans returns the bytes of unfinished data, without journals.
func (s *site) orphans() (n int64) {
	s.tb.Helper()
	work := filepath.Join(s.dir, ".uploads")
	for _, name := range list(s.tb, work) {
		if name == "lock" || strings.HasSuffix(name, ".log") {
			continue
		}
		info, err := os.Stat(filepath.Join(work, name))
		if err != nil {
			s.tb.Fatal(err)
		}
		n += max(info.Size(), 1)
	}
	return n
}

// clean fails the test if there are bytes of unfinished uploads.
func (s *site) clean() {
	s.tb.Helper()
	if n := s.orphans(); n != 0 {
		s.tb.Fatalf("%d bytes of unfinished uploads are left", n)
	}
	if n := s.Reserved(); n != 0 {
		s.tb.Fatalf("%d bytes are still counted for the quota", n)
	}
	if n := s.Unfinished(); n != 0 {
		s.tb.Fatalf("%d uploads are still counted as unfinished", n)
	}
}

func list(tb testing.TB, dir string) (names []string) {
	tb.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// content returns bytes that look random, the same for the same seed.
func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = source.Read(b)
	return b
}

// far returns a time at which all that can expire has.
func far() time.Time { return time.Now().Add(1000 * time.Hour) }
