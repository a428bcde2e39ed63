package watcher

import (
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stintgo/stint/internal/proc"
)

// Main is the watching process. It returns when the other has ended, and what
// that has left running has been killed. The error is that of a process that
// somebody else has started. args are what follows [Arg]: the run's name.
func Main(args []string) error {
	if len(args) != 1 {
		return errTable
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGTSTP)
	table, err := openTable(fdTable)
	if err != nil {
		return err
	}
	unix.CloseOnExec(fdEnded)
	unix.CloseOnExec(fdTable)
	unix.CloseOnExec(fdHeld) // it is only kept open
	closeInherited()
	awaitEnd(fdEnded)
	kill(args[0], table[atCells:])
	return nil
}

// closeInherited closes what stint has from whoever started it, such as the
// descriptor of a lock that the shell around it holds until stint ends. Only
// such descriptors are not to be closed on exec; the runtime's own are.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // no table of descriptors: they close when this process ends, just after stint
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= int(os.Stderr.Fd()) {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// awaitEnd blocks until nobody has the writing end of a pipe open. Also a job
// has it between fork and exec, so that none is still about to appear then.
func awaitEnd(fd int) {
	var b [1]byte
	for {
		if n, err := unix.Read(fd, b[:]); n <= 0 && err != unix.EINTR {
			return
		}
	}
}

// kill kills all processes of the jobs of a run that are in its table. It asks for no orderly end: whoever
// killed stint wanted it to be over, and a resumed run would meet the processes
// that take their time.
//
// A number whose group is gone meanwhile can be another group's only if all
// process numbers were used up in the moment since stint ended: stint takes a
// group out of the table before its leader is reaped.
func kill(run string, cells []atomic.Int32) {
	late := starting{run: []byte(proc.EnvRun + run), jobs: map[string]struct{}{}}
	for i := range cells {
		switch n := int(cells[i].Load()); {
		case n > 1:
			_ = unix.Kill(-n, unix.SIGKILL)
		case n < 0:
			late.jobs[strconv.Itoa(-n)] = struct{}{}
		}
	}
	if len(late.jobs) > 0 {
		late.killAll()
	}
}
