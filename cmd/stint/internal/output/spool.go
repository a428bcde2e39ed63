package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Spool creates the files that collect the output of jobs. They are in memory, which
// costs a twentieth of a file on disk; most jobs write very little. [Spool.Run] moves
// large output to disk. It is safe for concurrent use.
type Spool struct {
	dir string

	mu       sync.Mutex
	captures map[*Capture]struct{} // of jobs that may be writing; guarded by mu
	noMemory bool                  // the system has no files in memory; guarded by mu
	noUnname bool                  // dir does not support unnamed files; guarded by mu
}

// NewSpool returns a spool whose files on disk are in dir; empty means the system's
// directory for temporary files.
func NewSpool(dir string) *Spool {
	if dir == "" {
		dir = os.TempDir()
	}
	return &Spool{dir: dir, captures: map[*Capture]struct{}{}}
}

const (
	// moveEvery is the interval between two checks of outputs, and moveFrom the size in
	// bytes from which an output is moved to disk. A job that writes as fast as it can
	// fills about 100 MB per interval.
	moveEvery = 50 * time.Millisecond
	moveFrom  = 4 << 20
)

// Run moves large outputs from memory to disk until ctx ends. It returns an error if the
// disk fails.
func (s *Spool) Run(ctx context.Context) error {
	ticker := time.NewTicker(moveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		for _, c := range s.watched() {
			for i := range c.streams {
				if err := s.move(&c.streams[i]); err != nil {
					return err
				}
			}
		}
	}
}

// move moves a stream's output to disk if it is large.
func (s *Spool) move(c *captured) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil || c.size > 0 {
		return nil // closed or sealed meanwhile
	}
	info, err := c.file.Stat()
	if err != nil || info.Size()-c.moved < moveFrom {
		return err
	}
	if c.disk == nil {
		if c.disk, err = s.openDisk(); err != nil {
			return err
		}
	}
	end := info.Size()
	if _, err := io.Copy(c.disk, io.NewSectionReader(c.file, c.moved, end-c.moved)); err != nil {
		return s.diskError(err)
	}
	if err := punch(c.file, c.moved, end-c.moved); err != nil {
		return s.diskError(err)
	}
	c.moved = end
	return nil
}

// watch adds a capture to those that the loop checks.
func (s *Spool) watch(c *Capture) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.noMemory {
		s.captures[c] = struct{}{}
	}
}

func (s *Spool) unwatch(c *Capture) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.captures, c)
}

func (s *Spool) watched() []*Capture {
	s.mu.Lock()
	defer s.mu.Unlock()
	captures := make([]*Capture, 0, len(s.captures))
	for c := range s.captures {
		captures = append(captures, c)
	}
	return captures
}

// open returns a new unnamed file, which disappears when its last user has closed it.
func (s *Spool) open() (*os.File, error) {
	if s.lacks(&s.noMemory) {
		return s.openDisk()
	}
	f, err := openMemory()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EPERM) {
		s.note(&s.noMemory)
		return s.openDisk()
	}
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return f, nil
}

// Check reports whether files can be made in the spool's directory.
func (s *Spool) Check() error {
	f, err := s.openDisk()
	if err != nil {
		return err
	}
	return f.Close()
}

// openDisk returns an unnamed file on disk.
func (s *Spool) openDisk() (*os.File, error) {
	if !s.lacks(&s.noUnname) {
		f, err := openUnnamed(s.dir)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EISDIR) {
			return nil, s.diskError(err)
		}
		s.note(&s.noUnname)
	}
	f, err := openRemoved(s.dir)
	if err != nil {
		return nil, s.diskError(err)
	}
	return f, nil
}

func (s *Spool) diskError(err error) error {
	return fmt.Errorf("keep output in %s: %w; choose another directory with --tmpdir", s.dir, err)
}

// lacks and note read and set the missing features of the system.
func (s *Spool) lacks(what *bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *what
}

func (s *Spool) note(what *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*what = true
}

// openRemoved creates a file and removes its name at once.
func openRemoved(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "stint-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
