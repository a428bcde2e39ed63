package output

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/stintgo/stint/cmd/stint/internal/disk"
)

// Directories makes the directories that redirected outputs need, and makes
// durable which names are in them. Its methods may be called from any
// goroutine.
type Directories struct {
	syncDir func(dir string) error

	mu sync.Mutex
	// made are the directories that were made, whose own names may not be on disk
	// yet: the job that makes one need not be the first to have its output there.
	made map[string]struct{} // guarded by mu
}

// NewDirectories returns Directories that call syncDir to make the names in a
// directory durable; [disk.SyncDir] if it is nil.
func NewDirectories(syncDir func(dir string) error) *Directories {
	if syncDir == nil {
		syncDir = disk.SyncDir
	}
	return &Directories{syncDir: syncDir, made: map[string]struct{}{}}
}

// create makes dir, and what is missing above it.
func (d *Directories) create(dir string) error {
	for missing := dir; ; missing = filepath.Dir(missing) {
		if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		d.note(missing) // before it is there, for others to see it in time
	}
	return os.MkdirAll(dir, 0o777)
}

// keep makes the names in dir durable, and its own, if it was made here, and so
// on upwards.
func (d *Directories) keep(dir string) error {
	for below := ""; ; below, dir = dir, filepath.Dir(dir) {
		if err := d.syncDir(dir); err != nil {
			return err
		}
		d.forget(below)
		if !d.isMade(dir) {
			return nil
		}
	}
}

func (d *Directories) note(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.made[dir] = struct{}{}
}

func (d *Directories) forget(dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.made, dir)
}

func (d *Directories) isMade(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.made[dir]
	return ok
}
