//go:build linux

package crashtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fleet is the processes of the harness: a server and its workers, or the nodes of a
// cluster. A killed process is restarted at once.
type fleet struct {
	t       *testing.T
	dir     string
	url     string        // of the database server of a cluster
	lease   time.Duration // of its leader
	members []*member     // the server is the first
	// networks are the connections of nodes, by place; nil for undisturbed ones.
	networks []*network
	kills    int
	resumes  sync.WaitGroup // of stopped processes

	// died is when killed processes were known to be dead, by name.
	died map[string]int64
}

// member is a place in the fleet, and its process.
type member struct {
	is     string
	starts int
	name   string
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error // of the process; set when it has ended
}

// startFleet starts a process of f for each role.
func startFleet(t *testing.T, f *fleet, roles ...string) *fleet {
	t.Helper()
	f.t, f.died = t, make(map[string]int64)
	for i, role := range roles {
		f.members = append(f.members, &member{is: role})
		f.start(i)
	}
	t.Cleanup(f.end)
	return f
}

// start starts the process of a place.
func (f *fleet) start(place int) {
	f.t.Helper()
	m := f.members[place]
	m.starts++
	m.name = fmt.Sprintf("%s-%d-%d", m.is, place, m.starts)
	exe, err := os.Executable()
	if err != nil {
		f.t.Fatal(err)
	}
	m.cmd = exec.Command(exe)
	url, listen, address := f.url, "", ""
	if f.networks != nil {
		n := f.networks[place]
		url, listen, address = n.url, n.listen, n.others.Addr()
	}
	m.cmd.Env = append(os.Environ(),
		processIs+"="+m.is, processName+"="+m.name, processDir+"="+f.dir, processURL+"="+url,
		processLease+"="+f.lease.String(), processListen+"="+listen, processAddress+"="+address)
	m.cmd.Stdout, m.cmd.Stderr = f.t.Output(), f.t.Output()
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	m.ended = make(chan struct{})
	go func() {
		defer close(m.ended)
		m.err = m.cmd.Wait()
	}()
}

// kill kills the process of a place, and returns when it is dead.
func (f *fleet) kill(place int) {
	f.t.Helper()
	m := f.members[place]
	select {
	case <-m.ended:
		f.t.Fatalf("%s has ended by itself: %v", m.name, m.err)
	default:
	}
	if err := m.cmd.Process.Kill(); err != nil {
		f.t.Fatal(err)
	}
	f.dead(m)
	f.kills++
}

// dead waits for a killed process.
func (f *fleet) dead(m *member) {
	<-m.ended
	f.died[m.name] = now()
}

// restart kills the process of a place and starts the next.
func (f *fleet) restart(place int) {
	f.t.Helper()
	f.kill(place)
	f.start(place)
}

// stop stops the process of a place for a time, as if it swapped or its machine slept.
func (f *fleet) stop(place int, d time.Duration) {
	f.t.Helper()
	process := f.members[place].cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		f.t.Fatal(err)
	}
	f.resumes.Add(1)
	time.AfterFunc(d, func() {
		defer f.resumes.Done()
		_ = process.Signal(syscall.SIGCONT) // it may have been killed
	})
}

// end kills all running processes. Those of a test that has failed print their stacks.
func (f *fleet) end() {
	f.resumes.Wait()
	sig := syscall.SIGKILL
	if f.t.Failed() {
		sig = syscall.SIGQUIT
	}
	for _, m := range f.members {
		if f.died[m.name] == 0 {
			_ = m.cmd.Process.Signal(sig)
			f.dead(m)
		}
	}
}
