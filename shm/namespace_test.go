//go:build linux

package shm_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

const cloneNewTime = 0x80 // which syscall does not name

// apart makes a process start in new namespaces of the given kinds, in which it has all
// capabilities, as the same user.
func apart(namespaces uintptr) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | namespaces&^cloneNewTime,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
			// The new time namespace is that of the children, so the process is started
			// by unshare.
			Unshareflags: namespaces & cloneNewTime,
		}
	}
}

// startApart starts a process in new namespaces. It returns nil if the kernel does not
// permit that to the user that runs the test.
func startApart(t *testing.T, namespaces uintptr, does, path string) *process {
	t.Helper()
	p, err := tryStart(t, does, path, apart(namespaces))
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL):
		t.Logf("NOT SHOWN: the kernel has no such namespace for this user: %v", err)
		return nil
	case err != nil:
		t.Fatal(err)
	}
	return p
}

// A process of another PID namespace, where its PID is 1, holds a slot and waits for one
// like any other, and what it held is recovered when it is killed.
func TestB8_PIDNamespace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	for range 3 {
		p := startApart(t, syscall.CLONE_NEWPID, "hold one", path)
		if p == nil {
			return
		}
		if !p.await(1) {
			t.Fatal("the process has ended")
		}
		if h := inspect(t, path).Slots[0].Holders; len(h) != 1 || h[0].PID != 1 || h[0].Dead {
			t.Errorf("the holders are %+v, want process 1", h)
		}
		here := start(t, "hold one", path)
		there := startApart(t, syscall.CLONE_NEWPID, "hold one", path)
		until(t, "not both wait", func() bool { return inspect(t, path).Slots[0].Waiting == 2 })
		p.kill()
		order := inOrder(here, there)
		first := <-order
		until(t, "it is not one holder and one waiter", func() bool {
			u := inspect(t, path).Slots[0]
			return u.Running == 1 && u.Waiting == 1
		})
		first.kill()
		if second := <-order; !second.kill() {
			t.Error("a process has ended")
		}
	}
}

// inOrder delivers the processes in the order in which they get a slot.
func inOrder(all ...*process) <-chan *process {
	order := make(chan *process, len(all))
	for _, p := range all {
		go func() {
			p.await(1)
			order <- p
		}()
	}
	return order
}

// The clock of another time namespace may show another time, so a region cannot be shared
// with it.
func TestB8_TimeNamespace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	r := open(t, path, geometry)
	p := startApart(t, cloneNewTime, "open", path)
	if p == nil {
		return
	}
	if says := p.says(); !strings.Contains(says, "time namespace") || !strings.Contains(says, "is in use") {
		t.Errorf("opened with the clock of another namespace: %q", says)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if says := startApart(t, cloneNewTime, "open", path).says(); says != "<nil>" {
		t.Errorf("the region is not in use and was not made anew: %q", says)
	}
	open(t, path, geometry)
}

// If there is not enough memory, making the region fails, and smaller regions can be made
// afterwards.
func TestB8_FullMemory(t *testing.T) {
	p := startApart(t, syscall.CLONE_NEWNS, "fill", t.TempDir())
	if p == nil {
		return
	}
	if says := p.says(); !strings.Contains(says, "no space left") || !strings.HasSuffix(says, "and then opened") {
		t.Errorf("opened in a full /dev/shm: %q", says)
	}
}

// fill tries to make a region on a full file system.
func fill() {
	must(syscall.Mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=256k"))
	_, err := shm.Open("region", shm.Geometry{Slots: []int{shm.SlotsMax}})
	fmt.Println(err)
	_, err = shm.Open("region", one)
	must(err)
	fmt.Print("and then opened")
}

// A slot is recovered if the PID of the dead process belongs to another living process.
func TestB8_PIDIsReused(t *testing.T) {
	p := startApart(t, syscall.CLONE_NEWPID, "again", filepath.Join(t.TempDir(), "region"))
	if p == nil {
		return
	}
	if says := p.says(); says != "served" {
		t.Errorf("the slot of a process whose PID is reused: %q", says)
	}
}

// again kills a process that holds the slot, starts another with its PID, and acquires
// the slot.
func again() {
	const number = 1000
	holder := startAs(number, "hold one")
	_, err := holder.out.Read(make([]byte, 1))
	must(err)
	r := openOne()
	slots := r.Slots(0)
	slots.Bind(func() {}, nil)
	if _, err := slots.TryAcquire(stint.Normal); err == nil {
		must(errors.New("got a slot above the limit"))
	}
	holder.kill()
	other := startAs(number, "touch")
	for began := shm.Now(); ; {
		if _, err := slots.TryAcquire(stint.Normal); err == nil {
			break
		}
		if shm.Now()-began > int64(patience) {
			must(errors.New("the slot does not come back"))
		}
	}
	must(other.cmd.Process.Signal(syscall.Signal(0))) // fails if it does not live
	fmt.Print("served")
	other.kill()
}

// startAs starts a process with the given PID, which must be free.
func startAs(number int, does string) *process {
	for {
		// Threads have PIDs too: one of the runtime may have taken this one.
		must(os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(number-1)), 0o600))
		p, err := launch(exec.Command("/proc/self/exe"), does, os.Getenv(processRegion))
		must(err)
		if p.cmd.Process.Pid == number {
			return p
		}
		p.kill()
	}
}
