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

// patience is long enough for very busy machines; a passing test never waits for it.
const patience = time.Minute

// The test binary also runs as a server: the program itself, or one that waits for the
// test before it reads from the disk.
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

// watched returns a disk that reports when a read begins and ends, and waits for the gate
// in between: each byte lets one read continue, and its end lets all.
func watched(gate, report *os.File) readFunc {
	say := func(f *os.File, what string) {
		_, err := fmt.Fprintf(report, "%d %s %s\n", os.Getpid(), what, filepath.Base(f.Name())) // one write
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

// fleet is a group of servers that share a limit.
type fleet struct {
	t          *testing.T
	max, local int
	dir        string // which the servers serve
	region     string
	content    map[string][]byte // of the files
	gate       *os.File          // see watched
	childEnds  []*os.File        // of the gate and the reports
	begun      chan read

	mu    sync.Mutex
	going map[int]int // reads in progress, by process
	most  int         // maximum of all at once
}

// read is a read that has begun.
type read struct {
	pid  int
	name string
}

// newFleet creates files of the given sizes.
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

// watch counts the reads. A read reports its beginning after it has its slot, and its end
// before it releases the slot: so watch never counts more reads than slots in use.
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

// step lets one read continue.
func (f *fleet) step() {
	f.t.Helper()
	if _, err := f.gate.Write([]byte{0}); err != nil {
		f.t.Fatal(err)
	}
}

// open lets all reads continue, including later ones.
func (f *fleet) open() { f.gate.Close() }

// server is a server of a fleet.
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

// kill kills the server and waits until it has ended. Its reads no longer count.
func (s *server) kill() {
	s.fleet.mu.Lock()
	delete(s.fleet.going, s.cmd.Process.Pid)
	s.fleet.mu.Unlock()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// fetch starts fetching a file, and sends an error, or nil.
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

// state is the answer of /status.
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

// waitFor waits until that many requests to all servers wait for a slot.
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
