package proc

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Room returns how many processes and threads this process may start: by the limit on those of
// its user (RLIMIT_NPROC of getrlimit(2), which root does not have) and by the pids controllers of
// its control groups. Limits that cannot be read do not count. Others may need the same room.
func Room() int {
	room := userRoom(os.Geteuid())
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return room
	}
	return min(room, groupRoom(string(groups), "/sys/fs/cgroup"))
}

// userRoom returns how many processes and threads a user may start.
func userRoom(uid int) int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil || uid == 0 || limit.Cur > math.MaxInt32 {
		return math.MaxInt
	}
	return max(int(limit.Cur)-threadsOf(uid), 0)
}

// threadsOf counts the threads of a user.
func threadsOf(uid int) (n int) {
	tasks, _ := filepath.Glob("/proc/[1-9]*/task")
	for _, dir := range tasks {
		info, err := os.Stat(dir)
		if err != nil {
			continue // the process has ended
		}
		if s := info.Sys().(*syscall.Stat_t); int(s.Uid) == uid {
			n += int(s.Nlink) - 2 // a directory for each thread
		}
	}
	return n
}

// groupRoom returns how many processes and threads the control groups of a process may start. groups
// is its list of them, as in cgroups(7), and mount is where they are.
func groupRoom(groups, mount string) int {
	room := math.MaxInt
	for line := range strings.Lines(groups) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		root := mount
		switch controllers {
		case "": // version 2
		case "pids":
			root = filepath.Join(mount, "pids")
		default:
			continue
		}
		// The groups above this one limit it, too.
		for dir := filepath.Join("/", path); ; dir = filepath.Dir(dir) {
			most, limited := readCount(filepath.Join(root, dir, "pids.max"))
			now, known := readCount(filepath.Join(root, dir, "pids.current"))
			if limited && known {
				room = min(room, max(most-now, 0))
			}
			if dir == "/" {
				break
			}
		}
	}
	return room
}

// readCount reads the number in a file. ok is false if there is none, as in a limit that is "max".
func readCount(file string) (n int, ok bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil
}
