package output

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/stintgo/stint/cmd/stint/internal/disk"
)

// Directories creates the directories of redirected outputs, and makes the names in them
// durable. It is safe for concurrent use.
type Directories struct {
	syncDir func(dir string) error

	mu sync.Mutex
	// made has the created directories whose own names may not be durable yet: the job
	// that creates one need not be the first to finish its output there.
	made map[string]struct{} // guarded by mu
}

// NewDirectories returns Directories that call syncDir to make the names in a directory
// durable; nil is [disk.SyncDir].
func NewDirectories(syncDir func(dir string) error) *Directories {
	if syncDir == nil {
		syncDir = disk.SyncDir
	}
	return &Directories{syncDir: syncDir, made: map[string]struct{}{}}
}

// create creates dir and its missing parents.
func (d *Directories) create(dir string) error {
	for missing := dir; ; missing = filepath.Dir(missing) {
		if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		d.note(missing) // before it exists, so that other jobs see it in time
	}
	return os.MkdirAll(dir, 0o777)
}

// keep makes the names in dir durable; if dir was created here, its own name too, and so
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
