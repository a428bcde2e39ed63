package filestore_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue/filestore"
)

const ahead = 8 << 10 // bytes, of the logs of these tests

// unfillable is a disk whose files do not take what is written ahead of their end:
// reserving room for it fails sometimes, and writing it.
type unfillable struct {
	vfs.FS
	reserving, filling func() error
}

func (u *unfillable) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := u.FS.Create(name, c)
	return u.file(name, f, err)
}

func (u *unfillable) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := u.FS.ReuseForWrite(from, to, c)
	return u.file(to, f, err)
}

func (u *unfillable) file(name string, f vfs.File, err error) (vfs.File, error) {
	if err != nil || !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return unfillableFile{f, u}, nil
}

type unfillableFile struct {
	vfs.File
	disk *unfillable
}

func (f unfillableFile) Preallocate(at, length int64) error {
	if err := f.disk.reserving(); err != nil {
		return err
	}
	return f.File.Preallocate(at, length)
}

// WriteAt takes half of what is written if it fails.
func (f unfillableFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.disk.filling(); err != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], at)
		return n, err
	}
	return f.File.WriteAt(p, at)
}

func never() error { return nil }

// content is what a file of a disk has.
func content(t *testing.T, disk vfs.FS, path string) []byte {
	t.Helper()
	f, err := disk.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// writeLog writes random bytes in random parts, syncs them now and then, and returns
// what it has written.
func writeLog(t *testing.T, f vfs.File, rng *rand.Rand) (written []byte) {
	t.Helper()
	for range 1 + rng.IntN(60) {
		part := make([]byte, rng.IntN(1+rng.IntN(ahead)))
		for i := range part {
			part[i] = byte(1 + rng.IntN(255))
		}
		written = append(written, part...) // before Write, which may change its argument under the race detector
		if n, err := f.Write(part); n != len(part) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
		if rng.IntN(3) > 0 {
			if err := f.SyncData(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return written
}

// TestLogs_HoldWhatIsWritten: behind that a new log has zeros, and one that is used
// again has what was there, and zeros behind that, whatever fails.
func TestLogs_HoldWhatIsWritten(t *testing.T) {
	rng := seeded.Rand(t)
	for range 200 {
		disk := vfs.NewMem()
		sometimes := func() error {
			if rng.IntN(12) > 0 {
				return nil
			}
			return syscall.ENOSPC
		}
		fs := filestore.FillLogs(&unfillable{disk, sometimes, sometimes}, ahead)
		f, err := fs.Create("1.log", vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		want := writeLog(t, f, rng)
		for again := range 2 {
			got := content(t, disk, "1.log")
			if len(got) < len(want) || !bytes.Equal(got[:len(want)], want) {
				t.Fatalf("round %d: what was written is not there", again)
			}
			if behind := bytes.Trim(got[len(want):], "\x00"); len(behind) > 0 {
				t.Fatalf("round %d: %d bytes that were not written are there", again, len(behind))
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if f, err = fs.ReuseForWrite("1.log", "1.log", vfs.WriteCategoryUnspecified); err != nil {
				t.Fatal(err)
			}
			over := writeLog(t, f, rng)
			want = append(over, want[min(len(over), len(want)):]...)
		}
	}
}

// resized counts the syncs of logs, and those that found a log of another size than
// the one before.
type resized struct {
	vfs.FS
	syncs, grown int
	sizes        map[string]int64
}

func newResized(disk vfs.FS) *resized {
	r := &resized{sizes: map[string]int64{}}
	r.FS = filestore.Intercept(disk, func(op, path string, run func() error) error {
		if op == filestore.OpSync && strings.HasSuffix(path, ".log") {
			info, err := disk.Stat(path)
			if err != nil {
				return err
			}
			r.syncs++
			if info.Size() != r.sizes[path] {
				r.grown++
			}
			r.sizes[path] = info.Size()
		}
		return run()
	})
	return r
}

// TestLogs_GrowSeldom: of the syncs of small tasks few change the size of a file,
// and a write that is large by itself is not made larger.
func TestLogs_GrowSeldom(t *testing.T) {
	disk := newResized(vfs.NewMem())
	c := newTasks(t, openIn(t, disk, "store", filestore.Config{}))
	for range 100 {
		if err := c.submit(100); err != nil {
			t.Fatal(err)
		}
	}
	if disk.syncs < 100 || disk.grown > 30 {
		t.Errorf("%d of %d syncs changed the size of a log", disk.grown, disk.syncs)
	}

	mem := vfs.NewMem()
	fs := filestore.FillLogs(mem, ahead)
	f, err := fs.Create("1.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := f.Write(make([]byte, ahead)); err != nil {
			t.Fatal(err)
		}
		if err := f.SyncData(); err != nil {
			t.Fatal(err)
		}
	}
	if size := len(content(t, mem, "1.log")); size != 3*ahead {
		t.Errorf("the log has %d bytes after %d", size, 3*ahead)
	}
}

// TestC6_FillingALogMayFail: then the log grows with its records, and all calls succeed.
func TestC6_FillingALogMayFail(t *testing.T) {
	for _, reason := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		var hits atomic.Int64
		fails := func() error {
			hits.Add(1)
			return reason
		}
		power := newCrashable(vfs.NewCrashableMem())
		s, err := filestore.OpenIn(&unfillable{power, never, fails}, "store", filestore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		c := newTasks(t, s)
		for range 300 {
			if err := c.submit(100); err != nil {
				t.Fatal(err)
			}
		}
		left := power.crash()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if n := hits.Load(); n == 0 || n > 20 { // once a log
			t.Errorf("filling was tried %d times", n)
		}
		newTasks(t, openIn(t, left, "store", filestore.Config{})).has(300)
	}
}

// TestC6_FillingTakesNoLastRoom: a disk that has no room for zeros is left alone.
func TestC6_FillingTakesNoLastRoom(t *testing.T) {
	mem := vfs.NewMem()
	full := func() error { return syscall.ENOSPC }
	fs := filestore.FillLogs(&unfillable{mem, full, never}, ahead)
	f, err := fs.Create("1.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	want := writeLog(t, f, seeded.Rand(t))
	if got := content(t, mem, "1.log"); !bytes.Equal(got, want) {
		t.Errorf("the log has %d bytes after %d", len(got), len(want))
	}
}
