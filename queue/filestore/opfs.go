package filestore

import (
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Operations that change files, as interceptors get them.
const (
	opCreate    = "create"
	opReuse     = "reuse"
	opRename    = "rename"
	opLink      = "link"
	opRemove    = "remove"
	opRemoveAll = "remove all"
	opMkdir     = "mkdir"
	opWrite     = "write"
	opSync      = "sync"
)

// interceptor runs an operation on a path, or omits it, or repeats it: a failed operation
// may be repeated, and continues where it was.
type interceptor func(op, path string, run func() error) error

// opFS passes every operation that changes files through one function: failStop.do, or the
// faults and crashes of tests. Reads, and closing a file, which writes nothing, are not
// passed through it.
type opFS struct {
	vfs.FS
	do    interceptor
	ahead int64 // the number of zero bytes behind the content of logs
}

func (o *opFS) file(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &opFile{f, o.do, name}, nil
}

// written returns the file for one that is written from its beginning, and may be a log.
func (o *opFS) written(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || o.ahead == 0 || !strings.HasSuffix(name, ".log") {
		return o.file(name, f, err)
	}
	return newLogFile(opFile{f, o.do, name}, o.ahead), nil
}

// Create is as [vfs.FS] says.
func (o *opFS) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = o.do(opCreate, name, func() (err error) { f, err = o.FS.Create(name, c); return err })
	return o.written(name, f, err)
}

// ReuseForWrite is as [vfs.FS] says.
func (o *opFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = o.do(opReuse, to, func() (err error) { f, err = o.FS.ReuseForWrite(from, to, c); return err })
	return o.written(to, f, err)
}

// OpenReadWrite is as [vfs.FS] says.
func (o *opFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (f vfs.File, err error) {
	err = o.do(opCreate, name, func() (err error) { f, err = o.FS.OpenReadWrite(name, c, opts...); return err })
	return o.file(name, f, err)
}

// OpenDir is as [vfs.FS] says. The directory can be synced.
func (o *opFS) OpenDir(name string) (vfs.File, error) {
	f, err := o.FS.OpenDir(name)
	return o.file(name, f, err)
}

// Rename is as [vfs.FS] says.
func (o *opFS) Rename(from, to string) error {
	return o.do(opRename, to, func() error { return o.FS.Rename(from, to) })
}

// Link is as [vfs.FS] says.
func (o *opFS) Link(from, to string) error {
	return o.do(opLink, to, func() error { return o.FS.Link(from, to) })
}

// Remove is as [vfs.FS] says.
func (o *opFS) Remove(name string) error {
	return o.do(opRemove, name, func() error { return o.FS.Remove(name) })
}

// RemoveAll is as [vfs.FS] says.
func (o *opFS) RemoveAll(name string) error {
	return o.do(opRemoveAll, name, func() error { return o.FS.RemoveAll(name) })
}

// MkdirAll is as [vfs.FS] says, with directories that only their owner can enter.
func (o *opFS) MkdirAll(name string, perm os.FileMode) error {
	return o.do(opMkdir, name, func() error { return o.FS.MkdirAll(name, perm&ownerOnly) })
}

// Unwrap is as [vfs.FS] says.
func (o *opFS) Unwrap() vfs.FS { return o.FS }

// lockedFS is a file system with a directory that is already locked. The lock outlives
// the database, also one that is left behind because it cannot be closed.
type lockedFS struct{ vfs.FS }

// Lock does nothing: the directory is locked.
func (lockedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap is as [vfs.FS] says.
func (l lockedFS) Unwrap() vfs.FS { return l.FS }

// opFile is a file of an opFS.
type opFile struct {
	vfs.File
	do   interceptor
	name string
}

// Write is as [vfs.File] says. A full disk accepts a part; a repetition of the operation
// writes the rest.
func (f *opFile) Write(p []byte) (n int, err error) {
	err = f.do(opWrite, f.name, func() error {
		m, err := f.File.Write(p[n:])
		n += m
		return err
	})
	return n, err
}

// WriteAt is as [vfs.File] says.
func (f *opFile) WriteAt(p []byte, at int64) (n int, err error) {
	err = f.do(opWrite, f.name, func() error {
		m, err := f.File.WriteAt(p[n:], at+int64(n))
		n += m
		return err
	})
	return n, err
}

// Sync is as [vfs.File] says.
func (f *opFile) Sync() error { return f.do(opSync, f.name, f.File.Sync) }

// SyncData is as [vfs.File] says.
func (f *opFile) SyncData() error { return f.do(opSync, f.name, f.File.SyncData) }

// SyncTo is as [vfs.File] says.
func (f *opFile) SyncTo(length int64) (full bool, err error) {
	err = f.do(opSync, f.name, func() (err error) { full, err = f.File.SyncTo(length); return err })
	return full, err
}

// Preallocate is as [vfs.File] says, but does not fail: space that is not allocated now
// is allocated by the write.
func (f *opFile) Preallocate(at, length int64) error {
	_ = f.File.Preallocate(at, length)
	return nil
}
