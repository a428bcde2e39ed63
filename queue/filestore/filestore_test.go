package filestore_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
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
	mem  *vfs.MemFS
	mu   sync.Mutex
	most int // operations until one fails, and all that come after it; 0: none does
	err  error
}

func newCrashable(mem *vfs.MemFS) *crashable {
	c := &crashable{mem: mem}
	c.FS = filestore.Intercept(mem, func(_, _ string, run func() error) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.most == 1 {
			return c.err
		}
		c.most = max(c.most-1, 0)
		return run()
	})
	return c
}

// What operations fail with that are made to.
var (
	errBroken       = errors.New("the disk is broken")
	errFull   error = syscall.ENOSPC
)

// breakAt has the n-th operation fail, and all after it; 0: none.
func (c *crashable) breakAt(n int) { c.breakWith(n, errBroken) }

// breakWith is breakAt with an error.
func (c *crashable) breakWith(n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most, c.err = n, err
}

// crash returns the disk as it is when the power comes back: all that has been
// synced, and nothing else.
func (c *crashable) crash() *crashable { return c.left(vfs.CrashCloneCfg{}) }

// kill returns the disk as it is when its process has been killed: all that was
// written.
func (c *crashable) kill() *crashable {
	return c.left(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
}

func (c *crashable) left(of vfs.CrashCloneCfg) *crashable {
	c.mu.Lock()
	defer c.mu.Unlock()
	return newCrashable(c.mem.CrashClone(of))
}

// openIn opens a store, and closes it when the test ends.
func openIn(t *testing.T, fs vfs.FS, dir string, cfg filestore.Config) *filestore.Store {
	t.Helper()
	s, err := filestore.OpenIn(fs, dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, errBroken) {
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

// harness is a store whose process is killed in each crash, or a disk that loses its
// power.
func harness(t *testing.T, cfg storetest.Config, powerLoss bool) storetest.Harness {
	t.Helper()
	disk := newCrashable(vfs.NewCrashableMem())
	return storetest.Harness{
		Store:   openIn(t, disk, "store", settings(cfg)),
		Durable: true, PowerLoss: powerLoss,
		Reopen: func(t *testing.T) queue.Store {
			t.Helper()
			if powerLoss {
				disk = disk.crash()
			} else {
				disk = disk.kill()
			}
			return openIn(t, disk, "store", settings(cfg))
		},
		Break: func(n int) { disk.breakAt(n) },
	}
}

func openKilled(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	return harness(t, cfg, false)
}

func openWithoutPower(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	return harness(t, cfg, true)
}

func TestStore(t *testing.T) { storetest.Run(t, openKilled) }

func TestStore_PowerLoss(t *testing.T) { storetest.Run(t, openWithoutPower) }

func TestModel_Store(t *testing.T) { storetest.Model(t, openKilled, 2000) }
