//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint"
)

// patience is for machines that are very busy; no test waits for it if all is
// well.
const patience = time.Minute

// The test binary is the servers: the very program, or one that asks the test
// before it reads from the disk.
const (
	asProgram = "STINT_TEST_FILESERVER"
	asWatched = "STINT_TEST_WATCHED"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asProgram) == "":
		os.Exit(m.Run())
	case os.Getenv(asWatched) == "":
		main()
	default:
		cfg, _ := flags()
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := serve(ctx, cfg, watched(os.NewFile(3, "gate"), os.NewFile(4, "report"))); err != nil {
			log.Fatal(err)
		}
	}
}

// watched is a disk that says when a read begins and ends, and asks the gate
// between: each byte there lets one read go on, and its end lets all.
func watched(gate, report *os.File) readFunc {
	say := func(f *os.File, what string) {
		_, err := fmt.Fprintf(report, "%d %s %s\n", os.Getpid(), what, filepath.Base(f.Name())) // one write, so whole
		if err != nil {
			panic(err)
		}
	}
	return func(f *os.File, p []byte, offset int64) (int, error) {
		say(f, "begins")
		defer say(f, "ends")
		if _, err := gate.Read(make([]byte, 1)); err != nil && err != io.EOF {
			return 0, err
		}
		return f.ReadAt(p, offset)
	}
}

// fleet is servers that share a limit, as the test sees them.
type fleet struct {
	t          *testing.T
	max, local int
	dir        string // which they serve
	region     string
	content    map[string][]byte // of the files
	gate       *os.File          // see watched
	childEnds  []*os.File        // of the gate and the reports
	begun      chan read

	mu    sync.Mutex
	going map[int]int // reads that have begun and not ended, by process
	most  int         // of all at once
}

// read is one that has begun.
type read struct {
	pid  int
	name string
}

// newFleet makes files of so many bytes.
func newFleet(t *testing.T, limit, local int, sizes map[string]int) *fleet {
	t.Helper()
	f := &fleet{
		t: t, max: limit, local: local,
		dir: t.TempDir(), region: filepath.Join(t.TempDir(), "region"),
		content: map[string][]byte{}, begun: make(chan read, 10000), going: map[int]int{},
	}
	lot := rand.NewChaCha8([32]byte{})
	for name, size := range sizes {
		f.content[name] = make([]byte, size)
		_, _ = lot.Read(f.content[name])
		if err := os.WriteFile(filepath.Join(f.dir, name), f.content[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	allow, gate, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reports, report, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	f.gate, f.childEnds = gate, []*os.File{allow, report}
	var watching sync.WaitGroup
	watching.Go(func() { f.watch(reports) })
	t.Cleanup(func() { // after the servers have ended
		gate.Close()
		allow.Close()
		report.Close()
		watching.Wait()
		reports.Close()
	})
	return f
}

// watch counts the reads. That one has begun is said after the slot was had, and
// that it has ended before the slot is given back: so no more can be going on here
// than have slots.
func (f *fleet) watch(reports io.Reader) {
	for lines := bufio.NewScanner(reports); lines.Scan(); {
		var r read
		var what string
		if _, err := fmt.Sscan(lines.Text(), &r.pid, &what, &r.name); err != nil {
			f.t.Errorf("report %q: %v", lines.Text(), err)
			return
		}
		f.count(r.pid, what == "begins")
		if what == "begins" {
			f.begun <- r
		}
	}
}

func (f *fleet) count(pid int, begins bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, lives := f.going[pid]; !lives {
		return
	}
	if !begins {
		f.going[pid]--
		return
	}
	f.going[pid]++
	all := 0
	for _, n := range f.going {
		all += n
	}
	f.most = max(f.most, all)
	if all > f.max || f.going[pid] > f.local {
		f.t.Errorf("%d reads at once, want at most %d; %d of one server, want at most %d", all, f.max, f.going[pid], f.local)
	}
}

// next returns the next read that begins.
func (f *fleet) next() read {
	f.t.Helper()
	select {
	case r := <-f.begun:
		return r
	case <-time.After(patience):
		f.t.Fatal("no read begins")
		return read{}
	}
}

// step lets one read go on.
func (f *fleet) step() {
	f.t.Helper()
	if _, err := f.gate.Write([]byte{0}); err != nil {
		f.t.Fatal(err)
	}
}

// open lets all reads go on, also later ones.
func (f *fleet) open() { f.gate.Close() }

// server is one of a fleet.
type server struct {
	fleet *fleet
	cmd   *exec.Cmd
	url   string
}

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	// The race detector would sleep for a second at each exit.
	cmd.Env = append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	return cmd
}

func (f *fleet) start() *server {
	f.t.Helper()
	cmd := program(f.t, "-dir", f.dir, "-addr", "127.0.0.1:0", "-shared", f.region,
		"-max", strconv.Itoa(f.max), "-local", strconv.Itoa(f.local))
	cmd.Env = append(cmd.Env, asWatched+"=1")
	cmd.ExtraFiles = f.childEnds
	output, err := cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	s := &server{fleet: f, cmd: cmd}
	f.t.Cleanup(s.kill)
	f.mu.Lock()
	f.going[cmd.Process.Pid] = 0
	f.mu.Unlock()
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		f.t.Fatalf("a server did not start: %v", err)
	}
	s.url = strings.TrimSpace(line)
	return s
}

// kill kills the server and waits until it is gone. Its reads count no more.
func (s *server) kill() {
	s.fleet.mu.Lock()
	delete(s.fleet.going, s.cmd.Process.Pid)
	s.fleet.mu.Unlock()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// fetch begins to fetch a file, and sends what was wrong, or nil.
func (s *server) fetch(ctx context.Context, name, priority string) <-chan error {
	done := make(chan error, 1)
	go func() {
		status, body, err := s.get(ctx, "/"+name, http.Header{"Priority": {priority}})
		switch {
		case err != nil:
		case status != http.StatusOK:
			err = fmt.Errorf("%s: status %d", name, status)
		case !bytes.Equal(body, s.fleet.content[name]):
			err = fmt.Errorf("%s: other bytes than those of the file", name)
		}
		done <- err
	}()
	return done
}

func (s *server) get(ctx context.Context, path string, header http.Header) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// state is what /status answers.
type state struct {
	Stats stint.Stats    `json:"stats"`
	Why   []stint.Reason `json:"why"`
}

func (s *server) status(priority string) (st state) {
	t := s.fleet.t
	t.Helper()
	code, body, err := s.get(t.Context(), "/status", http.Header{"Priority": {priority}})
	if err != nil || code != http.StatusOK {
		t.Fatalf("status: %d, %v, %s", code, err, body)
	}
	if err := json.Unmarshal(body, &st); err != nil {
		t.Fatalf("status: %v in %s", err, body)
	}
	return st
}

// waitFor waits until so many requests to all servers wait for a slot.
func (s *server) waitFor(waiting int) {
	s.fleet.t.Helper()
	for late := time.After(patience); ; {
		st := s.status("")
		if st.Stats.Shared.Waiting == waiting {
			return
		}
		select {
		case <-late:
			s.fleet.t.Fatalf("%d wait, want %d: %+v", st.Stats.Shared.Waiting, waiting, st.Stats.Shared)
		default:
		}
	}
}

// wantAll waits for the ends of fetches.
func (f *fleet) wantAll(fetches []<-chan error) {
	f.t.Helper()
	late := time.After(patience)
	for _, done := range fetches {
		select {
		case err := <-done:
			if err != nil {
				f.t.Error(err)
			}
		case <-late:
			f.t.Fatal("a request is not served")
		}
	}
}
