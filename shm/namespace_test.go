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

// apart has a process start in namespaces of its own, in which it may do everything,
// as the same user.
func apart(namespaces uintptr) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | namespaces&^cloneNewTime,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
			// Of another time is who is started then, not who unshares it.
			Unshareflags: namespaces & cloneNewTime,
		}
	}
}

// startApart starts a process in namespaces of its own. Where the kernel refuses
// that to whoever runs the test there is nothing to see, and it returns nil.
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

// A process of another namespace of numbers, where it is number 1, has a slot and
// waits for one like any other, and what it had comes back when it is killed.
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
		until(t, "they do not wait", func() bool { return inspect(t, path).Slots[0].Waiting == 2 })
		p.kill()
		order := inOrder(here, there)
		first := <-order
		until(t, "it is not one who runs and one who waits", func() bool {
			u := inspect(t, path).Slots[0]
			return u.Running == 1 && u.Waiting == 1
		})
		first.kill()
		if second := <-order; !second.kill() {
			t.Error("a process has ended")
		}
	}
}

// inOrder tells which process has a slot, one after the other.
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

// A clock of another namespace may show another time, so what it is read for cannot
// be shared.
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
		t.Errorf("nobody uses it, and yet it was not made anew: %q", says)
	}
	open(t, path, geometry)
}

// Memory that is not there is an error when the region is made, and smaller regions
// can be made then.
func TestB8_FullMemory(t *testing.T) {
	p := startApart(t, syscall.CLONE_NEWNS, "fill", t.TempDir())
	if p == nil {
		return
	}
	if says := p.says(); !strings.Contains(says, "no space left") || !strings.HasSuffix(says, "and then opened") {
		t.Errorf("opened in a full /dev/shm: %q", says)
	}
}

// fill makes a region where there is no room.
func fill() {
	must(syscall.Mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=256k"))
	_, err := shm.Open("region", shm.Geometry{Slots: []int{shm.SlotsMax}})
	fmt.Println(err)
	_, err = shm.Open("region", one)
	must(err)
	fmt.Print("and then opened")
}

// The number of a process that has died is another's at once, which lives on.
func TestB8_NumberIsUsedAgain(t *testing.T) {
	p := startApart(t, syscall.CLONE_NEWPID, "again", filepath.Join(t.TempDir(), "region"))
	if p == nil {
		return
	}
	if says := p.says(); says != "served" {
		t.Errorf("the slot of a process whose number is another's: %q", says)
	}
}

// again kills a process that has the slot, starts another with its number, and wants
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
	must(other.cmd.Process.Signal(syscall.Signal(0))) // it lives
	fmt.Print("served")
	other.kill()
}

// startAs starts a process with a number that is free.
func startAs(number int, does string) *process {
	for {
		// Threads have numbers as well: one of the runtime may have been faster.
		must(os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(number-1)), 0o600))
		p, err := launch(exec.Command("/proc/self/exe"), does, os.Getenv(processRegion))
		must(err)
		if p.cmd.Process.Pid == number {
			return p
		}
		p.kill()
	}
}
