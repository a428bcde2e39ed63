package arena

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
)

// Stopped reports whether the process with this PID is stopped, by a signal or a
// debugger, and has the file open: the PID may be of another namespace, or reused.
// See proc_pid_stat(5).
func (a *Arena) Stopped(pid int) bool {
	dir := procDir(pid)
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return false
	}
	behind := stat[bytes.LastIndexByte(stat, ')')+1:] // the name may contain parentheses
	state := bytes.TrimLeft(behind, " ")
	return len(state) > 0 && (state[0] == 'T' || state[0] == 't') && a.openIn(dir)
}

// openIn reports whether the process with this directory in /proc has the file open.
func (a *Arena) openIn(dir string) bool {
	dir = filepath.Join(dir, "fd")
	all, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(all, func(fd os.DirEntry) bool { return a.isAt(filepath.Join(dir, fd.Name())) })
}
