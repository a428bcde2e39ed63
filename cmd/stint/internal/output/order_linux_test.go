package output_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/output"
)

// The space of outputs that have been printed is freed, also if there is always another output
// that waits for its turn.
func TestOutput_KeepOrderFreesSpace(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	dir := t.TempDir()
	spool := output.NewSpool(dir)
	p := output.NewPrinter(output.NewSink(null, null, nil, [2]bool{}), spool, true)
	end := func(seq int) {
		c, err := spool.Capture(true, false)
		if err != nil {
			t.Fatal(err)
		}
		f, _ := c.Files()
		if _, err := f.Write(make([]byte, 1<<20+100)); err != nil {
			t.Fatal(err)
		}
		if err := p.Print(output.Result{Seq: seq, Capture: c}); err != nil {
			t.Fatal(err)
		}
	}
	end(3)
	end(1)
	for seq := 2; seq < 100; seq += 2 { // one or two outputs wait at any time
		end(seq + 3)
		end(seq)
	}
	const most = 8 << 20
	if used := usedBelow(t, dir); used == 0 || used > most {
		t.Errorf("1 MiB waits, and the files have %d KiB", used>>10)
	}
}

// A result that waits for its turn takes little memory besides its output.
func TestOutput_KeepOrderMemoryOfWaitingResults(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	const results = 1000
	for text, most := range map[string]int64{"": 200, "text\n": 500} {
		spool := output.NewSpool(t.TempDir())
		p := output.NewPrinter(output.NewSink(null, null, nil, [2]bool{}), spool, true)
		before := heap()
		for seq := 2; seq < results+2; seq++ {
			c, err := spool.Capture(true, true)
			if err != nil {
				t.Fatal(err)
			}
			f, _ := c.Files()
			if _, err := f.WriteString(text); err != nil {
				t.Fatal(err)
			}
			if err := p.Print(output.Result{Seq: seq, Capture: c}); err != nil {
				t.Fatal(err)
			}
		}
		if each := (int64(heap()) - int64(before)) / results; each > most {
			t.Errorf("a result with output %q takes %d bytes, want at most %d", text, each, most)
		}
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
	}
}

// heap returns the bytes of objects that are in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// usedBelow returns the bytes on disk of this process's open files below a directory.
func usedBelow(t *testing.T, dir string) (used int64) {
	t.Helper()
	const open = "/proc/self/fd"
	files, err := os.ReadDir(open)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		path := filepath.Join(open, f.Name())
		link, err := os.Readlink(path)
		if err != nil || !strings.HasPrefix(link, dir) {
			continue // the directory that was read, and other files
		}
		var st syscall.Stat_t
		if err := syscall.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		used += st.Blocks * 512
	}
	return used
}
