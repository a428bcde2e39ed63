package filestore_test

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// notOpened checks that a directory is refused, and why.
func notOpened(t *testing.T, dir, want string) {
	t.Helper()
	s, err := filestore.Open(dir, filestore.Config{})
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
		t.Errorf("opening %s says %v; want one line that says %q", dir, err, want)
	}
}

// filled is a directory with some tasks in it.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	c := newTasks(t, openDir(t, dir))
	for range 100 {
		if err := c.submit(1000); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// largest is the largest file of a directory whose name has a pattern.
func largest(t *testing.T, dir, pattern string) (path string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	size := int64(-1)
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > size {
			path, size = p, info.Size()
		}
	}
	return path
}

// TestC6_LostTail: a log that was cut short looks to the database as if it had
// ended there.
func TestC6_LostTail(t *testing.T) {
	for name, damage := range map[string]func(log string) error{
		"cut short": func(log string) error { return os.Truncate(log, 40_000) },
		"removed":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t)
			if err := damage(largest(t, dir, "*.log")); err != nil {
				t.Fatal(err)
			}
			notOpened(t, dir, "batches are missing")
			notOpened(t, dir, "batches are missing") // an attempt to open it does not repair it
			if err := os.Remove(filepath.Join(dir, filestore.TailFile)); err != nil {
				t.Fatal(err)
			}
			if err := openDir(t, dir).Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestC6_DamagedFiles(t *testing.T) {
	// A new database's first log would have a format in which the first of these only
	// ends the log.
	for _, pattern := range []string{"*.log", "MANIFEST-*"} {
		dir := filled(t)
		path := largest(t, dir, pattern)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		content[len(content)/3] ^= 0x40
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		notOpened(t, dir, "its files cannot be read; restore the directory from a copy")
	}
}

// TestC6_DamagedTable: the tasks of a damaged block stay where they are, and all
// others go on.
func TestC6_DamagedTable(t *testing.T) {
	dir, random := t.TempDir(), seeded.Rand(t)
	const tasks, size = 200, 20_000 // more than the small database keeps in memory
	fill := newTasks(t, openIn(t, vfs.Default, dir, filestore.Config{}))
	for range tasks {
		payload := make([]byte, size)
		for i := range payload {
			payload[i] = byte(random.Uint32()) // which cannot be compressed
		}
		task := queue.NewTask{ID: fill.ids.New(fill.now), Spec: queue.Spec{Kind: "k", Payload: payload}}
		if _, err := fill.store.Submit(t.Context(), fill.now, []queue.NewTask{task}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(fill.store.Compact(t.Context()), fill.store.Close()); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cfg := filestore.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	c := newTasks(t, openIn(t, vfs.Default, dir, cfg))
	overwrite(t, largest(t, dir, "*.sst"))
	claim := queue.Claim{Worker: "w", Kinds: []string{"k"}, Max: tasks, Lease: time.Hour}
	claimed, err := c.store.Claim(t.Context(), c.now, claim)
	stats, statsErr := c.store.Stats(t.Context(), c.now)
	damaged := stats.Queues["default"].Damaged
	if err != nil || statsErr != nil || damaged == 0 || len(claimed.Tasks)+damaged != tasks {
		t.Fatalf("of %d tasks %d start, and %d are damaged; errors %v, %v", tasks, len(claimed.Tasks), damaged, err, statsErr)
	}
	held, err := c.store.Find(t.Context(), queue.Filter{States: []queue.State{queue.Held}}, queue.Page{})
	if err != nil || len(held) != damaged || held[0].Holds[0].Code != queue.HoldDamaged {
		t.Fatalf("%d are held, and %d are damaged; error %v", len(held), damaged, err)
	}
	if err := c.store.Close(); err != nil || !strings.Contains(log.String(), held[0].ID.String()) {
		t.Errorf("closing says %v, and the log %s", err, log.String())
	}
}

// overwrite changes a byte in the middle of a file.
func overwrite(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	_, err = f.ReadAt(b, info.Size()/2)
	b[0] ^= 0x40
	_, writeErr := f.WriteAt(b, info.Size()/2)
	if err := errors.Join(err, writeErr, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestC6_NewerFormat(t *testing.T) {
	dir := filled(t)
	s := openDir(t, dir)
	if err := errors.Join(s.Set(filestore.RowFormat, binary.BigEndian.AppendUint32(nil, 99)), s.Close()); err != nil {
		t.Fatal(err)
	}
	notOpened(t, dir, "format 99")
}

// silent is a logger that says nothing, unless the database gives up.
type silent struct{ t *testing.T }

func (silent) Infof(string, ...any)                {}
func (silent) Errorf(string, ...any)               {}
func (s silent) Fatalf(format string, args ...any) { s.t.Fatalf(format, args...) }

func TestC6_DatabaseOfAnother(t *testing.T) {
	dir := t.TempDir()
	db, err := pebble.Open(dir, &pebble.Options{Logger: silent{t}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("theirs"), nil, pebble.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	notOpened(t, dir, "is not a store")
}

func TestC6_ConfigIsChecked(t *testing.T) {
	_, err := filestore.Open(t.TempDir(), filestore.Config{MaxPayload: -1, MinFree: -2})
	if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "MaxPayload is -1") ||
		!strings.Contains(err.Error(), "MinFree is -2") {
		t.Errorf("the error is %v; want one that names both", err)
	}
}

// TestC6_DamagedTableOfTheStore: a table with what the store needs to open is refused with the
// remedy.
func TestC6_DamagedTableOfTheStore(t *testing.T) {
	dir := filled(t)
	if err := openDir(t, dir).Close(); err != nil { // moves what is in the log to a table
		t.Fatal(err)
	}
	table := largest(t, dir, "*.sst")
	content, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		content[i] ^= 0x5a
	}
	if err := os.WriteFile(table, content, 0o600); err != nil {
		t.Fatal(err)
	}
	notOpened(t, dir, "restore the directory from a copy")
}

// TestC6_SubmitAfterClose: the error says that the store is closed, and nothing of the disk.
func TestC6_SubmitAfterClose(t *testing.T) {
	c := newTasks(t, openDir(t, t.TempDir()))
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.submit(1); !errors.Is(err, queue.ErrClosed) || strings.Contains(err.Error(), "disk") {
		t.Errorf("a submit after Close says %v", err)
	}
}
