package arena

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Keeper is a process that has an open file with locks, as its own or inherited.
type Keeper struct {
	PID     int    // in this process's PID namespace
	Name    string // of its program, as in /proc/PID/comm
	Numbers []int  // its PID in each namespace that it is in, the outermost first
}

// Proc reads in /proc which processes have a file open, and with which of its locks.
type Proc struct{ id Identity } // of the file

// Holds reports whether an open file of the process pid has a lock of the file. known is
// false if the process exists and this one is not permitted to inspect its files. See
// proc_pid_fdinfo(5).
func (p Proc) Holds(pid, lock int) (holds, known bool) {
	locks, err := p.locksIn(procDir(pid))
	return slices.Contains(locks, lock), err == nil || !os.IsPermission(err)
}

// Ended reports whether there is no process pid in this PID namespace. A zombie still
// counts as a process.
func Ended(pid int) bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// Keepers returns, for each lock of the file, the processes that have an open file with
// that lock: only those that this process may inspect, sorted by PID. It reads the
// descriptors of all processes.
func (p Proc) Keepers() map[int][]Keeper {
	keepers := make(map[int][]Keeper)
	for _, pid := range processes() {
		dir := procDir(pid)
		locks, err := p.locksIn(dir)
		if err != nil || len(locks) == 0 {
			continue
		}
		keeper := Keeper{PID: pid, Name: command(dir), Numbers: numbers(dir)}
		for _, lock := range locks {
			keepers[lock] = append(keepers[lock], keeper)
		}
	}
	return keepers
}

// Stopped reports whether the process with this PID is stopped, by a signal or a
// debugger, and has the file open: the PID may be of another namespace, or reused.
// See proc_pid_stat(5).
func (p Proc) Stopped(pid int) bool {
	dir := procDir(pid)
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return false
	}
	behind := stat[bytes.LastIndexByte(stat, ')')+1:] // the name may contain parentheses
	state := bytes.TrimLeft(behind, " ")
	return len(state) > 0 && (state[0] == 'T' || state[0] == 't') && p.openIn(dir)
}

// SeesAll reports whether this process is in the initial PID namespace, and so sees the
// processes of all namespaces.
func SeesAll() bool {
	const first = "pid:[4026531836]" // PROC_PID_INIT_INO of the kernel
	namespace, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && namespace == first
}

func procDir(pid int) string { return filepath.Join("/proc", strconv.Itoa(pid)) }

// processes lists the PIDs in /proc, in order.
func processes() (pids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close() //nolint:errcheck // it was only read
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// locksIn returns the locks of the file that the open files of a process have, each once.
// It does not touch other files: that could block on a network server that is gone.
func (p Proc) locksIn(dir string) (locks []int, err error) {
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	for _, fd := range fds {
		info, _ := os.ReadFile(filepath.Join(dir, "fdinfo", fd.Name())) // it may be closed by now
		for line := range strings.Lines(string(info)) {
			lock, inode, ok := parseLock(line)
			if ok && inode == p.id.Inode && !slices.Contains(locks, lock) && p.isAt(filepath.Join(dir, "fd", fd.Name())) {
				locks = append(locks, lock)
			}
		}
	}
	return locks, err
}

// isAt reports whether the file is at path.
func (p Proc) isAt(path string) bool {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return err == nil && identityOf(&st) == p.id
}

// openIn reports whether the process with this directory in /proc has the file open.
func (p Proc) openIn(dir string) bool {
	dir = filepath.Join(dir, "fd")
	all, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(all, func(fd os.DirEntry) bool { return p.isAt(filepath.Join(dir, fd.Name())) })
}

// parseLock reads a line of fdinfo such as
//
//	lock:	1: OFDLCK ADVISORY WRITE -1 00:1b:5 1099511627776 1099511627776
//
// The inode is the last of the three numbers after -1; the device before it may differ
// from the one that stat returns.
func parseLock(line string) (lock int, inode uint64, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "lock:" || fields[2] != "OFDLCK" {
		return 0, 0, false
	}
	file := fields[6]
	inode, err := strconv.ParseUint(file[strings.LastIndexByte(file, ':')+1:], 10, 64)
	if err != nil {
		return 0, 0, false
	}
	at, err := strconv.ParseInt(fields[7], 10, 64)
	return int(at - locksAt), inode, err == nil
}

// command returns the name of a process's program.
func command(dir string) string {
	name, _ := os.ReadFile(filepath.Join(dir, "comm"))
	return strings.TrimSuffix(string(name), "\n")
}

// numbers returns the PIDs of a process, from the line NSpid of its status.
func numbers(dir string) (all []int) {
	status, _ := os.ReadFile(filepath.Join(dir, "status"))
	for line := range strings.Lines(string(status)) {
		list, ok := strings.CutPrefix(line, "NSpid:")
		if !ok {
			continue
		}
		for field := range strings.FieldsSeq(list) {
			if pid, err := strconv.Atoi(field); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}
