package disk_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/disk"
)

func TestSyncDir(t *testing.T) {
	dir := t.TempDir()
	if err := disk.SyncDir(dir); err != nil {
		t.Error(err)
	}
	if err := disk.SyncDir(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := disk.SyncDir("/proc"); err != nil {
		t.Errorf("a file system without a disk: %v", err)
	}
}
