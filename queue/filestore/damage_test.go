package filestore_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

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
			notOpened(t, dir, "batches are missing") // looking at it does not mend it
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
		notOpened(t, dir, "its files cannot be read; put the directory back from a copy")
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
	notOpened(t, dir, "is no store")
}

func TestC6_ConfigIsChecked(t *testing.T) {
	_, err := filestore.Open(t.TempDir(), filestore.Config{MaxPayload: -1, MinFree: -2})
	if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "MaxPayload is -1") ||
		!strings.Contains(err.Error(), "MinFree is -2") {
		t.Errorf("the error is %v; want one that names both", err)
	}
}
