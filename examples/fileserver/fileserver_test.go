//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint"
)

// The servers get requests in turn until more wait than there are slots. Then everything
// is read at once, in all tiers. The fleet checks that no more reads than slots run at
// once.
func TestB9_OneLimitOverAllServers(t *testing.T) {
	f := newFleet(t, 3, 2, map[string]int{"small": 1000, "large": chunkSize + 1})
	servers := []*server{f.start(), f.start(), f.start()}
	var fetches []<-chan error
	for i, s := range servers {
		for range 3 {
			fetches = append(fetches, s.fetch(t.Context(), "small", ""))
		}
		servers[0].waitFor([]int{1, 3, 6}[i]) // two read in the first, one in the second, none in the third
	}
	for range 3 {
		f.next()
	}
	st := servers[2].status("u=0")
	if u := st.Stats.Shared; u.Max != 3 || u.Running != 3 || len(u.Holders) != 3 || st.Stats.Running != 0 {
		t.Errorf("status is %+v of %+v, want 3 of 3, of no slot here", u, st.Stats)
	}
	if len(st.Why) != 1 || st.Why[0].Code != stint.CodeShared || st.Why[0].Running != 3 {
		t.Errorf("a read of u=0 waits for %+v, want the shared slots alone", st.Why)
	}
	f.open()
	for i := range 24 {
		fetches = append(fetches, servers[i%3].fetch(t.Context(), "large", fmt.Sprintf("u=%d", i%8)))
	}
	f.wantAll(fetches)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.most != 3 {
		t.Errorf("%d reads at once, want 3", f.most)
	}
}

// All slots are in use and thirty requests of low priority wait for them, in all servers,
// when one of high priority comes. It is next. (A process that the machine does not
// schedule for 30 ms must leave its slot to others, so a few may precede it.)
func TestB9_HighPriorityPassesTheFlood(t *testing.T) {
	f := newFleet(t, 2, 2, map[string]int{"low": 1000, "high": 1000})
	servers := []*server{f.start(), f.start(), f.start()}
	var fetches []<-chan error
	for i := range 32 {
		fetches = append(fetches, servers[i%3].fetch(t.Context(), "low", "u=7"))
	}
	f.next()
	f.next()
	servers[0].waitFor(30)
	fetches = append(fetches, servers[1].fetch(t.Context(), "high", "u=0, i"))
	servers[0].waitFor(31)

	before := 0
	for f.step(); f.next().name != "high"; f.step() {
		before++
	}
	if before > 10 {
		t.Errorf("%d of 30 requests that had waited with low priority were served before one of high priority", before)
	}
	f.open()
	f.wantAll(fetches)
}

// A server is killed while it holds all slots. The others get all of them.
func TestB9_KilledServer(t *testing.T) {
	f := newFleet(t, 3, 3, map[string]int{"file": 2 * chunkSize})
	killed, servers := f.start(), []*server{f.start(), f.start()}
	var lost, fetches []<-chan error
	for range 3 {
		lost = append(lost, killed.fetch(t.Context(), "file", "u=0"))
		f.next()
	}
	for i := range 6 {
		fetches = append(fetches, servers[i%2].fetch(t.Context(), "file", "u=7"))
	}
	servers[0].waitFor(6)

	killed.kill()
	for range 3 {
		if r := f.next(); r.pid == killed.cmd.Process.Pid {
			t.Error("a dead server reads")
		}
	}
	for _, done := range lost {
		if <-done == nil {
			t.Error("a dead server has served a file")
		}
	}
	f.open()
	f.wantAll(fetches)
}

// A waiting request whose client leaves is not served later.
func TestB9_ClientGoes(t *testing.T) {
	f := newFleet(t, 1, 1, map[string]int{"first": 1000, "gone": 1000, "last": 1000})
	s := f.start()
	first := s.fetch(t.Context(), "first", "")
	f.next()
	ctx, cancel := context.WithCancel(t.Context())
	gone := s.fetch(ctx, "gone", "")
	s.waitFor(1)
	cancel()
	if <-gone == nil {
		t.Error("the client that went was served")
	}
	s.waitFor(0)
	last := s.fetch(t.Context(), "last", "")
	s.waitFor(1)
	f.open()
	f.wantAll([]<-chan error{first, last})
	if r := f.next(); r.name != "last" {
		t.Errorf("%s is read, want last", r.name)
	}
}

// A server that receives SIGTERM accepts no requests, and ends when its downloads have
// ended.
func TestB9_EndingServerFinishesDownloads(t *testing.T) {
	f := newFleet(t, 1, 1, map[string]int{"file": 3 * chunkSize})
	s, other := f.start(), f.start()
	download := s.fetch(t.Context(), "file", "")
	f.next()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			break
		}
		conn.Close()
	}
	f.open()
	f.wantAll([]<-chan error{download})
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the server that ends: %v", err)
	}
	f.wantAll([]<-chan error{other.fetch(t.Context(), "file", "")})
}

// Ranges, types and listings are those of the standard library. This test covers what
// reading in chunks could break, and that no file outside the directory is served.
func TestB9_Files(t *testing.T) {
	f := newFleet(t, 2, 1, map[string]int{"file": 2*chunkSize + 100, "none": 0})
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(f.dir, "link")); err != nil {
		t.Fatal(err)
	}
	f.open()
	s := f.start()
	content := string(f.content["file"])
	tests := []struct {
		path, ranges string
		status       int
		body         string
		reads        int
	}{
		{path: "/file", status: http.StatusOK, body: content, reads: 3},
		{path: "/none", status: http.StatusOK},
		{path: "/file", ranges: "bytes=0-9", status: http.StatusPartialContent, body: content[:10], reads: 1},
		{path: "/file", ranges: "bytes=-50", status: http.StatusPartialContent, body: content[len(content)-50:], reads: 2},
		{
			path: "/file", ranges: fmt.Sprintf("bytes=%d-%d", chunkSize-1, chunkSize),
			status: http.StatusPartialContent, body: content[chunkSize-1:][:2], reads: 2,
		},
		{path: "/file", ranges: "bytes=9999999-", status: http.StatusRequestedRangeNotSatisfiable, reads: 1},
		{path: "/other", status: http.StatusNotFound},
		{path: "/..%2f" + filepath.Base(f.region), status: http.StatusNotFound},
		{path: "/link", status: http.StatusInternalServerError},
	}
	for _, test := range tests {
		status, body, err := s.get(t.Context(), test.path, http.Header{"Range": {test.ranges}})
		if err != nil {
			t.Fatalf("%s %s: %v", test.path, test.ranges, err)
		}
		if status != test.status || test.status < 300 && string(body) != test.body {
			t.Errorf("%s %s: status %d and %d bytes, want %d and %d", test.path, test.ranges,
				status, len(body), test.status, len(test.body))
		}
		for range test.reads {
			f.next()
		}
	}
	if _, body, err := s.get(t.Context(), "/", nil); err != nil || !strings.Contains(string(body), `<a href="file">`) {
		t.Errorf("listing: %s, %v", body, err)
	}
	select {
	case r := <-f.begun:
		t.Errorf("%v is read once more than need be", r)
	default:
	}
}

// The demonstration runs to its end, and so do its servers.
func TestB9_Demo(t *testing.T) {
	out, err := program(t, "-demo", "3").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if n := len(regexp.MustCompile(`(?m)^u=0.* ms .* ms .* MB/s$`).FindAll(out, -1)); n != 3 {
		t.Errorf("it prints %d measurements, want 3:\n%s", n, out)
	}
}
