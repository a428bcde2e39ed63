package filestore_test

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// noReads is a file system in which no file can be opened to be read.
type noReads struct {
	vfs.FS
	err syscall.Errno
}

func (f noReads) Open(name string, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
}

// TestC6_OpenWithoutDescriptors: a store that cannot be opened for lack of descriptors, or
// of the right to read its files, is not called damaged: a directory that is put back from
// an older copy loses tasks.
func TestC6_OpenWithoutDescriptors(t *testing.T) {
	for _, reason := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EACCES} {
		disk := vfs.NewMem()
		c := newTasks(t, openIn(t, disk, "store", filestore.Config{}))
		if err := errors.Join(c.submit(1), c.store.Close()); err != nil {
			t.Fatal(err)
		}
		broken := newFaulty(disk, filestore.OpCreate, reason)
		broken.broken.Store(true)
		for what, files := range map[string]vfs.FS{"read": noReads{disk, reason}, "create": broken} {
			if what == "create" && reason == syscall.EACCES {
				continue // the lock cannot be made, which has its own message
			}
			_, err := filestore.OpenIn(files, "store", filestore.Config{})
			want := "ulimit -n"
			if reason == syscall.EACCES {
				want = "change their owner"
			}
			if !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, reason) || !strings.Contains(err.Error(), want) ||
				strings.Contains(err.Error(), "copy") || strings.Contains(err.Error(), "unknown") {
				t.Errorf("%v, no file can be %s: %v; want %q in it", reason, what, err, want)
			}
		}
		openIn(t, disk, "store", filestore.Config{})
	}
}
