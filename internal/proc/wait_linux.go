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

// sysProcAttr asks for a process group of its own and, unless it is watched, that
// the leader be killed should stint die without having ended its jobs (kill -9,
// out of memory): nobody would collect their output, and a resumed run starts
// them again. The rest of the group is for package watcher; this covers the
// moments before a group is in its table, and a system where it cannot run.
//
// The kernel sends that signal when the thread that forked ends. The runtime
// ends threads only where a goroutine exits that is locked to one: no goroutine
// of stint run does, but those of a program that uses package isolate may.
func sysProcAttr(watched bool) *syscall.SysProcAttr {
	if watched {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// await is the part of Wait that differs between systems.
func (p *Process) await(last func(), stopped func(syscall.Signal)) (syscall.WaitStatus, error) {
	waitable(p.pid, stopped)
	last()
	p.forget() // the number is nobody else's yet
	return reap(p.pid)
}

// codeStopped is si_code of a child that has been stopped (CLD_STOPPED).
const codeStopped = 5

// waitable blocks until the process has ended and leaves it to be reaped.
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

// takeStop takes the news that the process was stopped, which would be answered
// again otherwise. That it has ended meanwhile is left for later.
func takeStop(pid int, stopped func(syscall.Signal)) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG, nil)
	if err == nil && info.Signo != 0 && stopped != nil {
		stopped(syscall.Signal(*(*int32)(unsafe.Add(unsafe.Pointer(&info), atStatus))))
	}
}

// atStatus is where a siginfo_t of a child has si_status: three numbers, then,
// aligned as a pointer is, the child's and its user's number, then this.
const atStatus = (3*4+unsafe.Sizeof(uintptr(0))-1)&^(unsafe.Sizeof(uintptr(0))-1) + 2*4

// Ended reports whether the leader has ended, though whoever waits for it may
// not have noticed yet.
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

// Survived reports whether processes of the group run whose leader has ended. It
// is called while the leader waits to be reaped, and looks at every process of
// the system: the kernel has no cheaper answer.
func (p *Process) Survived() bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true // nobody can tell
	}
	for _, entry := range entries {
		if c := entry.Name()[0]; c < '1' || c > '9' {
			continue
		}
		// One that has ended while we look has no such file.
		if stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat"); err == nil && runsIn(string(stat), p.pid) {
			return true
		}
	}
	return false
}

// runsIn reports whether stat, the file in /proc of that name, is of a process
// in a group that has not ended.
func runsIn(stat string, group int) bool {
	// The name, in parentheses, is the process's to choose.
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	return len(fields) > 2 && fields[0] != "Z" && fields[0] != "X" && fields[2] == strconv.Itoa(group)
}

// StopSelf stops this process until it is continued. The signal goes to the
// calling thread: sent to the process it might be taken by another, while this
// one goes on as if it had been continued already.
func StopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGSTOP)
}
