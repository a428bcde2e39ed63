package proc

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sysProcAttr requests a process group and, unless the process is watched, that the
// kernel kill the leader if stint dies without having ended its jobs (kill -9, out of
// memory): their output would be lost, and a resumed run starts them again. Package
// watcher ends the rest of the group; this covers the moments before the group is in its
// table, and systems where it cannot run.
//
// The kernel sends that signal when the thread that forked ends. The runtime
// ends a thread only when a goroutine exits that is locked to it: no goroutine
// of stint run does, but those of a program that uses package isolate may.
func sysProcAttr(watched bool) *syscall.SysProcAttr {
	if watched {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// await is the system-dependent part of Wait.
func (p *Process) await(last func(), stopped func(syscall.Signal)) (syscall.WaitStatus, error) {
	waitable(p.pid, stopped)
	last()
	p.forget() // before reap, which frees the PID
	return reap(p.pid)
}

// codeStopped is the si_code of a child that has been stopped (CLD_STOPPED).
const codeStopped = 5

// waitable blocks until the process has ended, without reaping it.
func waitable(pid int, stopped func(syscall.Signal)) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		switch {
		case err == unix.EINTR:
		case err != nil || info.Code != codeStopped:
			return
		default:
			takeStop(pid, stopped)
		}
	}
}

// takeStop consumes the report that the process was stopped, which waitid would otherwise
// return again. If the process has ended meanwhile, it leaves that for the next call.
func takeStop(pid int, stopped func(syscall.Signal)) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG, nil)
	if err == nil && info.Signo != 0 && stopped != nil {
		stopped(syscall.Signal(*(*int32)(unsafe.Add(unsafe.Pointer(&info), atStatus))))
	}
}

// atStatus is the offset of si_status in the siginfo_t of a child: it follows three
// 32-bit numbers and, aligned like a pointer, the PID and the user ID of the child.
const atStatus = (3*4+unsafe.Sizeof(uintptr(0))-1)&^(unsafe.Sizeof(uintptr(0))-1) + 2*4

// Ended reports whether the leader has ended, even if Wait has not returned yet.
func (p *Process) Ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return true
	}
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// Survived reports whether processes of the group run after their leader has ended. It
// must be called before the leader is reaped.
func (p *Process) Survived() bool {
	running, err := GroupsThatRun(map[int]bool{p.pid: true})
	return err != nil || running[p.pid] // unknown, or known
}

// GroupsThatRun returns those of a set of groups of which a process runs. It reads the state of every
// process of the system: the kernel has no cheaper way to exclude those that have ended and are
// not reaped.
func GroupsThatRun(groups map[int]bool) (running map[int]bool, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	running = make(map[int]bool)
	for _, entry := range entries {
		if c := entry.Name()[0]; c < '1' || c > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		if group := groupOf(string(stat)); groups[group] {
			running[group] = true
		}
	}
	return running, nil
}

// groupOf returns the group of a process by the content of its /proc/PID/stat, or 0 if it has ended.
func groupOf(stat string) int {
	// The process can choose its name, which is in parentheses.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 || fields[0] == "Z" || fields[0] == "X" {
		return 0
	}
	group, _ := strconv.Atoi(fields[2])
	return group
}

// StopSelf stops this process until it is continued. It sends the signal to the calling
// thread: if it were sent to the process another thread might receive it, while this one
// runs on as if the process had been continued already.
func StopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
}
