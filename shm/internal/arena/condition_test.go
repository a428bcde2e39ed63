//go:build linux

package arena_test

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stintgo/stint/shm/internal/arena"
)

// A file that is not a region is left as it is, also one that begins with zeros.
func TestB8_ArenaForeignFile(t *testing.T) {
	for _, content := range []string{"notes", "\x00", strings.Repeat("\x00", 8192), strings.Repeat("\x00", 512) + "disk"} {
		path := newPath(t)
		write(t, path, content)
		for name, do := range map[string]func() error{
			"open":   func() error { _, err := tryOpen(path, layout); return err },
			"remove": func() error { return arena.Remove(path, patience) },
			"look":   func() error { _, err := arena.Look(path); return err },
		} {
			if err := do(); !errors.Is(err, arena.ErrMismatch) || errors.Is(err, arena.ErrInUse) {
				t.Errorf("%s: %v, want a mismatch", name, err)
			}
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != content {
			t.Errorf("it has become %q, %v", text, err)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// unfinished is the mark of an unfinished file, in place of the magic.
const unfinished = 0x0a656b616d2d7473 // "st-make\n"

// A file whose maker has died is made anew, or removed, whatever its layout was to be.
func TestB8_ArenaUnfinishedFile(t *testing.T) {
	mark := string(binary.NativeEndian.AppendUint64(nil, unfinished))
	for _, left := range []string{"", mark, mark + strings.Repeat("\x00", 9000)} {
		path := newPath(t)
		write(t, path, left)
		open(t, path)
		path = newPath(t)
		write(t, path, left)
		if err := arena.Remove(path, patience); err != nil {
			t.Errorf("%q was not removed: %v", left, err)
		}
	}
}

// A file that was made before the machine was started, or whose header was lost in a
// power failure, is made anew.
func TestB8_ArenaIsMadeAnew(t *testing.T) {
	for name, at := range map[string]int64{"no header": 0, "another boot": 3} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			before := open(t, path)
			before.Words[0] = 7
			poke(at, 0)(t, path)
			after := open(t, path)
			if w := after.Words[0]; w != 0 {
				t.Errorf("word 0 is %d, want 0", w)
			}
			// A boot id also differs in another container, in which a goroutine may be late.
			if before.Words[0] = 9; name == "another boot" && after.Words[0] != 0 {
				t.Error("the file was made anew in the memory of its former users")
			}
		})
	}
}
