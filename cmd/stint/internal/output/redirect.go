package output

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// Redirect is a file for the standard output of one job, which gets its name only if the
// job succeeds: so a file that exists is complete. It is for one goroutine.
type Redirect struct {
	dirs  *Directories
	path  string
	file  *os.File
	named string // the temporary name, if the file needs one
	plain bool   // path is a device or a pipe, written to directly
}

// Redirect opens the output file for path. It creates missing directories.
func (d *Directories) Redirect(path string) (*Redirect, error) {
	r := &Redirect{dirs: d, path: path}
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
		}
		r.plain = !info.Mode().IsRegular()
		// The target of a symbolic link is replaced, not the link. A link without a target
		// is replaced itself.
		if r.path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	err := r.open()
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.create(filepath.Dir(r.path)); err == nil {
			err = r.open()
		}
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Redirect) open() (err error) {
	if r.plain {
		r.file, err = os.OpenFile(r.path, os.O_WRONLY, 0)
		return err
	}
	dir := filepath.Dir(r.path)
	r.file, err = openLinkable(dir)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EISDIR) {
		r.file, r.named, err = createTemporary(r.path)
	}
	return err
}

// createTemporary creates a hidden file beside path, for file systems without unnamed
// files. A killed process leaves it behind.
func createTemporary(path string) (*os.File, string, error) {
	name := temporaryName(path)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	return f, name, err
}

// temporaryName returns a new name beside path. It is short, so that it is valid wherever
// the name of path is, and random: jobs of this run and of others, in other containers
// too, may have the same path.
func temporaryName(path string) string {
	dir, _ := filepath.Split(path)
	return fmt.Sprintf("%s.stint%016x", dir, rand.Uint64())
}

// File returns the file that the job writes to.
func (r *Redirect) File() *os.File { return r.file }

// Commit gives the file its name, atomically replacing an existing file. If durable is
// set, the contents are on disk before that, and the name when Commit returns.
func (r *Redirect) Commit(durable bool) error {
	defer r.Discard()
	if r.plain {
		return nil
	}
	if durable {
		if err := r.file.Sync(); err != nil {
			return err
		}
	}
	if err := r.name(); err != nil || !durable {
		return err
	}
	return r.dirs.keep(filepath.Dir(r.path))
}

// name gives the file its name.
func (r *Redirect) name() error {
	if r.named == "" {
		err := link(r.file, r.path)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return err
		}
		// A link cannot replace a file. A rename can, but needs a name to start from.
		name := temporaryName(r.path)
		if err := link(r.file, name); err != nil {
			return err
		}
		r.named = name
	}
	if err := os.Rename(r.named, r.path); err != nil {
		return err
	}
	r.named = ""
	return nil
}

// Discard removes the file, unless it has its name already. It may be called several
// times, and on nil.
func (r *Redirect) Discard() {
	if r == nil {
		return
	}
	_ = r.file.Close()
	if r.named != "" {
		_ = os.Remove(r.named)
		r.named = ""
	}
}
