package watcher

import (
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stintgo/stint/internal/proc"
)

// Main is the watching process. It returns after stint has ended and the jobs that it
// left running have been killed and have ended. It returns an error if stint has not started this
// process. args are the arguments behind [Arg]: the run's name.
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
	await(kill(args[0], table[atCells:]))
	return nil
}

// closeInherited closes the descriptors that stint has inherited, such as the descriptor
// of a lock that a shell holds until stint ends. Only inherited descriptors lack
// close-on-exec; the runtime's own have it.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // no list of descriptors: they close when this process ends, just after stint
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

// awaitEnd blocks until no process has the writing end of a pipe open. A job has it
// open between fork and exec, so after that no further job can appear.
func awaitEnd(fd int) {
	var b [1]byte
	for {
		if n, err := unix.Read(fd, b[:]); n <= 0 && err != unix.EINTR {
			return
		}
	}
}

// kill kills all processes of the jobs of a run that are in its table, with SIGKILL:
// stint was killed to end at once, and a resumed run would run beside processes that end
// slowly. It returns the groups.
//
// If a group has ended meanwhile, its ID can belong to another group only if all
// process IDs were used up in the moment since stint ended: stint removes a
// group from the table before its leader is reaped.
func kill(run string, cells []atomic.Int32) (groups map[int]bool) {
	groups = make(map[int]bool)
	late := starting{run: []byte(proc.EnvRun + run), jobs: map[string]struct{}{}, groups: groups}
	for i := range cells {
		switch n := int(cells[i].Load()); {
		case n > 1:
			_ = unix.Kill(-n, unix.SIGKILL)
			groups[n] = true
		case n < 0:
			late.jobs[strconv.Itoa(-n)] = struct{}{}
		}
	}
	if len(late.jobs) > 0 {
		late.killAll()
	}
	return groups
}

// await returns when no process of the groups runs: one that frees much memory, or waits for a disk,
// goes on for a while after SIGKILL, and the slots that the run shares are its until then. A
// group that has ended once counts as ended, since its ID may be used again.
func await(groups map[int]bool) {
	for pause := time.Millisecond; len(groups) > 0; pause = min(2*pause, 200*time.Millisecond) {
		running, err := proc.GroupsThatRun(groups)
		if err != nil || len(running) == 0 {
			return
		}
		groups = running
		time.Sleep(pause)
	}
}
