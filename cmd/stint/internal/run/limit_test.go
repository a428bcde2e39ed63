package run_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/jobcount"
	"github.com/stintgo/stint/cmd/stint/internal/run"
)

// A missing file is reported once: not at the first check, when the file may be in the
// middle of being replaced, but at the second.
func TestJobsFile_Gone(t *testing.T) {
	f := run.JobsFile{Path: filepath.Join(t.TempDir(), "jobs"), Machine: jobcount.Machine{CPUs: 1, Most: 10}}
	for range 2 {
		if err := os.WriteFile(f.Path, []byte("3\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if changed, err := f.Changed(); !changed || err != nil {
			t.Errorf("a new file: %v, %v", changed, err)
		}
		if n, err := f.Read(); n != 3 || err != nil {
			t.Errorf("Read = %d, %v", n, err)
		}
		if err := os.Remove(f.Path); err != nil {
			t.Fatal(err)
		}
		for look := 1; look <= 5; look++ {
			if changed, err := f.Changed(); changed || errors.Is(err, fs.ErrNotExist) != (look == 2) {
				t.Errorf("look %d at nothing: %v, %v", look, changed, err)
			}
		}
	}
}
