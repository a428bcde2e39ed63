package output

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// Spool makes the files that collect the output of jobs. Its methods may be
// called from any goroutine.
type Spool struct {
	dir string
	// named: the directory's file system has no files without a name.
	named sync.Once
	tmp   func(dir string) (*os.File, error)
}

// NewSpool returns a spool in dir, or in the system's directory for temporary
// files if dir is empty.
func NewSpool(dir string) *Spool {
	if dir == "" {
		dir = os.TempDir()
	}
	return &Spool{dir: dir}
}

// Full reports whether the spool has no room left, which the spool itself never
// meets: it is the jobs that write.
func (s *Spool) Full() bool {
	var st syscall.Statfs_t
	return syscall.Statfs(s.dir, &st) == nil && (st.Bavail == 0 || st.Files > 0 && st.Ffree == 0)
}

// Dir is where the spool is.
func (s *Spool) Dir() string { return s.dir }

// open returns a new file that has no name, so that it is gone with its last
// user whatever happens. It is in append mode: a process that a job left behind
// and that still writes never writes over anything.
func (s *Spool) open() (*os.File, error) {
	s.named.Do(func() {
		s.tmp = openUnnamed
		if f, err := openUnnamed(s.dir); errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EISDIR) {
			s.tmp = openRemoved
		} else if err == nil {
			_ = f.Close()
		}
	})
	f, err := s.tmp(s.dir)
	if err != nil {
		return nil, fmt.Errorf("spool: %w; --tmpdir names another directory", err)
	}
	return f, nil
}

// openRemoved makes a file and removes its name at once.
func openRemoved(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "stint-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	// CreateTemp has no append mode; set it afterwards.
	_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFL, syscall.O_APPEND|syscall.O_RDWR)
	if errno != 0 {
		_ = f.Close()
		return nil, os.NewSyscallError("fcntl", errno)
	}
	return f, nil
}
