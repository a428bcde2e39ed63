package redisstore_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/stintgo/stint/internal/freeport"
)

// server is a Redis server with its files in a directory of its own. Unlike those of package
// dbserver it can be killed and started again, and takes arguments.
type server struct {
	dir         string
	addr        string // host:port
	first, args []string
	cmd         *exec.Cmd
	said        bytes.Buffer
}

// start starts a server that listens on a free port, with arguments besides the usual
// ones, and waits until it answers.
func start(args ...string) (*server, error) { return startWith(nil, args...) }

// startWith is start with arguments before the usual ones.
func startWith(first []string, args ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "stint-redis-")
	if err != nil {
		return nil, err
	}
	addr, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, addr: addr, first: first, args: args}
	return s, s.run()
}

// run starts the server, for the first time or again.
func (s *server) run() error {
	_, port, _ := net.SplitHostPort(s.addr)
	s.said.Reset()
	s.cmd = exec.Command("redis-server", slices.Concat(s.first, []string{
		"--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--unixsocket", s.socket(),
	}, s.args)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server, which \"apt install redis-server\" installs: %w", err)
	}
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket(), MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	for limit := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := c.Ping(context.Background()).Err()
		if err == nil || strings.HasPrefix(err.Error(), "NOAUTH") || strings.HasPrefix(err.Error(), "MASTERDOWN") {
			return nil
		}
		if time.Now().After(limit) {
			s.kill()
			return fmt.Errorf("redis-server does not answer: %w\n%s", err, s.said.String())
		}
	}
}

// newReplica starts a replica of a server, with more arguments.
func newReplica(t *testing.T, primary *server, more ...string) *server {
	t.Helper()
	host, port, err := net.SplitHostPort(primary.addr)
	if err != nil {
		t.Fatal(err)
	}
	return newServer(t, append([]string{"--appendonly", "no", "--replicaof", host, port}, more...)...)
}

func (s *server) socket() string { return filepath.Join(s.dir, "s") }
func (s *server) url() string    { return "redis://" + s.addr }

// kill ends the server as kill -9 does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// stop stops the server without an end, as a machine that hangs.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

// remove ends the server and removes its files.
func (s *server) remove() {
	s.kill()
	_ = os.RemoveAll(s.dir)
}

// again starts the server again after kill.
func (s *server) again(t *testing.T) {
	t.Helper()
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}

// raw returns a client of the server.
func (s *server) raw(t *testing.T) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket()})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// newServer starts a server for one test.
func newServer(t *testing.T, args ...string) *server {
	t.Helper()
	s, err := start(args...)
	if s != nil {
		t.Cleanup(s.remove)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shared is the server of all tests that do nothing to it.
var shared struct {
	once   sync.Once
	server *server
	err    error
}

func sharedServer(t *testing.T) *server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = start("--appendonly", "yes", "--appendfsync", "no") })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

func TestMain(m *testing.M) {
	logging.Disable() // of the client
	code := m.Run()
	if shared.server != nil {
		shared.server.remove()
	}
	os.Exit(code)
}

// proxy passes connections to a server, and cuts them.
type proxy struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
	mute   string        // a connection that has sent it passes nothing more; empty: none does
	budget int           // bytes until the connections are cut; 0: no limit
	cut    chan struct{} // receives when the budget has been used up
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, conns: map[net.Conn]bool{}, cut: make(chan struct{}, 1)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		p.close()
		running.Wait()
	})
	return p
}

// close refuses connections, and cuts all.
func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cutAll()
}

func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() }

func (p *proxy) serve(c net.Conn) {
	s, err := net.Dial("unix", p.to)
	if err != nil {
		_ = c.Close()
		return
	}
	p.mu.Lock()
	if p.closed {
		_, _ = c.Close(), s.Close()
	}
	p.conns[c], p.conns[s] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pass(s, c) })
	both.Go(func() { p.pass(c, s) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, c)
	delete(p.conns, s)
	p.mu.Unlock()
}

// pass copies bytes until a connection ends, or the budget is used up in the middle.
func (p *proxy) pass(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if p.mutes(b[:n]) {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		keep := p.spend(n)
		if _, failed := to.Write(b[:keep]); failed != nil || err != nil {
			return
		}
		if keep < n {
			p.cutAll()
			p.cut <- struct{}{}
			return
		}
	}
}

// mutes reports whether a connection that has sent sent is silent from now on.
func (p *proxy) mutes(sent []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mute != "" && bytes.Contains(sent, []byte(p.mute))
}

// muteAfter makes each connection silent that sends a text from now on.
func (p *proxy) muteAfter(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = text
}

// spend returns how many of n bytes may pass.
func (p *proxy) spend(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.budget == 0 {
		return n
	}
	if n < p.budget {
		p.budget -= n
		return n
	}
	n, p.budget = p.budget, 0
	return n - 1
}

// cutAfter cuts all connections after n bytes.
func (p *proxy) cutAfter(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget = n
}

// cutAll cuts all connections now.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// until polls a condition of a server that no event announces.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatal("not within 20 s: ", what)
		}
	}
}
