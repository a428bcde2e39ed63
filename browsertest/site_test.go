package browsertest_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/transfer/browser"
	"github.com/stintgo/stint/transfer/receiver"
)

const (
	kilobyte = 1000
	megabyte = 1000 * kilobyte

	chunk = 8 << 20 // bytes, as transfer.js has it
)

// site is a server with the page and a receiver, which counts what it receives.
type site struct {
	tb    testing.TB
	url   string
	inbox string
	made  string // directory of the files that are uploaded
	rate  stint.Limiter

	mu       sync.Mutex
	bytes    int64    // of all bodies
	running  int      // requests with a body
	most     int      // that were running at once
	requests []string // methods and URLs
	// fault returns the status with which a request is refused, or 0. It is called with mu held.
	fault func(*http.Request) int
	// refusal is the body of the answers to them.
	refusal string
}

// serve starts a site that receives rate bytes per second over all uploads.
func serve(tb testing.TB, rate float64, cfg browser.Config) *site {
	tb.Helper()
	s := &site{tb: tb, inbox: filepath.Join(tb.TempDir(), "inbox"), made: tb.TempDir(), refusal: "refused by the test"}
	s.rate = stint.NewLimiter(rate, stint.LimiterConfig{})
	r, err := receiver.Open(s.inbox, receiver.Config{Rate: &s.rate})
	if err != nil {
		tb.Fatal(err)
	}
	page, err := browser.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", page)
	mux.Handle("/files/", s.counted(r))
	server := httptest.NewServer(mux)
	tb.Cleanup(func() {
		r.Close()
		server.CloseClientConnections()
		server.Close()
	})
	s.url = server.URL + "/"
	return s
}

// counted counts requests before they reach a handler, and refuses those that fault wants refused.
func (s *site) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.String())
		status := 0
		if s.fault != nil {
			status = s.fault(r)
		}
		if r.Method == http.MethodPatch {
			s.running++
			s.most = max(s.most, s.running)
		}
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if r.Method == http.MethodPatch {
				s.running--
			}
		}()
		if status != 0 {
			http.Error(w, s.refusal, status)
			return
		}
		r.Body = &countedBody{ReadCloser: r.Body, site: s}
		next.ServeHTTP(w, r)
	})
}

type countedBody struct {
	io.ReadCloser
	site *site
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	b.site.bytes += int64(n)
	return n, err
}

// seen returns what seen reads of the site, with mu held.
func seen[T any](s *site, read func() T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return read()
}

// methods returns how many requests of a method the site has received.
func (s *site) methods(method string) int {
	return seen(s, func() (n int) {
		for _, r := range s.requests {
			if r[:len(method)+1] == method+" " {
				n++
			}
		}
		return n
	})
}

// file makes a file with random content, and returns its path.
func (s *site) file(name string, size int) string {
	s.tb.Helper()
	path := filepath.Join(s.made, name)
	f, err := os.Create(path)
	if err != nil {
		s.tb.Fatal(err)
	}
	source := rand.NewChaCha8([32]byte{byte(size), byte(size >> 8), byte(len(name))})
	if _, err := io.CopyN(f, source, int64(size)); err != nil {
		s.tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		s.tb.Fatal(err)
	}
	return path
}

// received fails the test unless the inbox has exactly the files of these paths, by name and SHA-256, and nothing
// of unfinished uploads.
func (s *site) received(paths ...string) {
	s.tb.Helper()
	entries, err := os.ReadDir(s.inbox)
	if err != nil {
		s.tb.Fatal(err)
	}
	var got, want []string
	for _, e := range entries {
		if !e.IsDir() {
			got = append(got, e.Name()+" "+sum(s.tb, filepath.Join(s.inbox, e.Name())))
		}
	}
	for _, p := range paths {
		want = append(want, filepath.Base(p)+" "+sum(s.tb, p))
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.tb.Errorf("the inbox has\n%q, want\n%q", got, want)
	}
}

// unfinished returns the names of the data of unfinished uploads.
func (s *site) unfinished() (names []string) {
	s.tb.Helper()
	all, err := filepath.Glob(filepath.Join(s.inbox, ".uploads", "*"))
	if err != nil {
		s.tb.Fatal(err)
	}
	for _, name := range all {
		if base := filepath.Base(name); base != "lock" && filepath.Ext(base) == "" {
			names = append(names, base)
		}
	}
	return names
}

func sum(tb testing.TB, path string) string {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// patience bounds every wait of a test.
const patience = 4 * time.Minute

// pollEvery is how often a tab checks a condition.
const pollEvery = 20 * time.Millisecond

// await waits until the site fulfils a condition, which is checked with mu held.
func (s *site) await(what string, ok func() bool) {
	s.tb.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if seen(s, ok) {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-s.tb.Context().Done():
			s.tb.Fatal("the test ends while it waits for " + what)
		}
	}
	s.tb.Fatalf("waited in vain for %s: %d bytes, %d running, requests %q", what,
		seen(s, func() int64 { return s.bytes }), seen(s, func() int { return s.running }),
		seen(s, func() []string { return s.requests }))
}
