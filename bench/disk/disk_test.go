package disk_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintgo/stint/bench/disk"
)

func TestMemoryIsNoDisk(t *testing.T) {
	const memory = "/dev/shm"
	if disk.FileSystem(memory) != "tmpfs" {
		return // a system that has none
	}
	if err := disk.CheckReal(memory); err == nil || !strings.Contains(err.Error(), "set TMPDIR") {
		t.Errorf("err = %v, want one that says what to do", err)
	}
}

func TestLogGrowsOrIsWrittenOver(t *testing.T) {
	for _, tt := range []struct{ room, want int64 }{{0, 300}, {250, 250}} {
		dir := t.TempDir()
		l, err := disk.NewLog(dir, 100, int(tt.room))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := l.Append(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "log"))
		if err != nil || info.Size() != tt.want {
			t.Errorf("with room for %d the file is %v (%v), want %d bytes", tt.room, info, err, tt.want)
		}
	}
}
