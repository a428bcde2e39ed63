package filestore_test

import (
	"io"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue/filestore"
)

// narrow is a file system whose disk is full after each byte.
type narrow struct{ vfs.FS }

func (n narrow) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := n.FS.Create(name, c)
	return narrowFile{f}, err
}

type narrowFile struct{ vfs.File }

func (f narrowFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p[:min(1, len(p))])
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

// TestC6_WritesGoOn: a full disk takes a part, and what is run again goes on behind
// that.
func TestC6_WritesGoOn(t *testing.T) {
	disk := vfs.NewMem()
	fs := filestore.Intercept(narrow{disk}, func(_, _ string, run func() error) error {
		for run() != nil {
		}
		return nil
	})
	f, err := fs.Create("f", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.Write([]byte("tasks")); n != 5 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	f.Close()
	f, err = disk.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); string(got) != "tasks" || err != nil {
		t.Errorf("the file has %q, %v", got, err)
	}
}
