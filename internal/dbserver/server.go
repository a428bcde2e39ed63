// Package dbserver runs PostgreSQL, PgBouncer and Redis for tests and benchmarks. Each is a
// process of its own on a free port of the loopback interface, with its files in a directory
// that the caller names. It is stopped through that process, and ends with this one.
package dbserver

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/freeport"
)

const (
	startWithin = 30 * time.Second
	stopWithin  = 30 * time.Second
	tryEvery    = 10 * time.Millisecond
)

// Server is a database server that was started.
type Server struct {
	DSN string // its URL

	start   func() (*process, error)
	process *process
	// The signals that end it in order, without a wait for its clients, and as a crash does.
	stop, kill syscall.Signal
}

// Again starts the server again after Stop or Kill.
func (s *Server) Again() (err error) {
	s.process, err = s.start()
	return err
}

// Stop ends the server in order.
func (s *Server) Stop() { s.process.stop(s.stop) }

// Kill ends the server at once, as a crash does.
func (s *Server) Kill() { s.process.stop(s.kill) }

// process is the process of a server.
type process struct {
	cmd    *exec.Cmd
	output bytes.Buffer // of the program; read only after it has ended
	ended  chan struct{}
}

// start starts a program in dir and waits until up answers nil.
func start(
	dir string, attributes *syscall.SysProcAttr, up func() error, name string, args ...string,
) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{})} //nolint:noctx // stop ends it
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = dir, &p.output, &p.output, attributes
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // its output says how it ended
	}()
	for limit := time.Now().Add(startWithin); ; time.Sleep(tryEvery) {
		err := up()
		if err == nil {
			return p, nil
		}
		select {
		case <-p.ended:
			return nil, fmt.Errorf("%s ended: %s", filepath.Base(name), strings.TrimSpace(p.output.String()))
		default:
		}
		if time.Now().After(limit) {
			p.stop(syscall.SIGKILL)
			return nil, fmt.Errorf("%s does not answer within %s: %w", filepath.Base(name), startWithin, err)
		}
	}
}

// stop asks the process to end by a signal, and makes it end if it does not.
func (p *process) stop(by syscall.Signal) {
	_ = p.cmd.Process.Signal(by) // it may have ended already
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// freeAddress returns an address of the loopback interface on which nothing listens.
func freeAddress() (address, port string, err error) {
	if address, err = freeport.Address(); err == nil {
		_, port, err = net.SplitHostPort(address)
	}
	return address, port, err
}
