package filestore_test

import (
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/storetest"
)

// crashable is a disk that can lose its power. Its operations and its copies
// exclude each other: a copy that meets some of the operations of a MemFS waits
// for them for ever, and they for it.
type crashable struct {
	vfs.FS
	mem *vfs.MemFS
	mu  sync.Mutex
}

func newCrashable(mem *vfs.MemFS) *crashable {
	c := &crashable{mem: mem}
	c.FS = filestore.Intercept(mem, func(_, _ string, run func() error) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		return run()
	})
	return c
}

// crash returns the disk as it is when the power comes back: all that has been
// synced, and nothing else.
func (c *crashable) crash() *crashable {
	c.mu.Lock()
	defer c.mu.Unlock()
	return newCrashable(c.mem.CrashClone(vfs.CrashCloneCfg{}))
}

// openIn opens a store, and closes it when the test ends.
func openIn(t *testing.T, fs vfs.FS, dir string, cfg filestore.Config) *filestore.Store {
	t.Helper()
	s, err := filestore.OpenIn(fs, dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// openDir opens a store in a directory of the real disk.
func openDir(t *testing.T, dir string) *filestore.Store {
	t.Helper()
	s, err := filestore.Open(dir, filestore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func settings(cfg storetest.Config) filestore.Config {
	return filestore.Config{
		MaxPayload: cfg.MaxPayload, MaxResult: cfg.MaxResult, MaxCheckpoint: cfg.MaxCheckpoint,
		WatchBuffer: cfg.WatchBuffer,
	}
}

// TestStore runs the contract on a disk that loses its power in each crash.
func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, cfg storetest.Config) storetest.Harness {
		t.Helper()
		disk := newCrashable(vfs.NewCrashableMem())
		return storetest.Harness{
			Store:   openIn(t, disk, "store", settings(cfg)),
			Durable: true,
			Reopen: func(t *testing.T) queue.Store {
				t.Helper()
				disk = disk.crash()
				return openIn(t, disk, "store", settings(cfg))
			},
		}
	})
}
