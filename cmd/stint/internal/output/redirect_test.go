package output_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/output"
)

func TestRedirect(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "dir", "out")
	for _, row := range []struct {
		text    string
		commit  bool
		after   string
		durable bool
	}{
		{text: "one", commit: false, after: ""},
		{text: "one", commit: true, after: "one", durable: true},
		{text: "two", commit: false, after: "one"},
		{text: "two", commit: true, after: "two"},
	} {
		r, err := output.OpenRedirect(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.File().WriteString(row.text); err != nil {
			t.Fatal(err)
		}
		if row.commit {
			if err := r.Commit(row.durable); err != nil {
				t.Fatal(err)
			}
		}
		r.Discard()
		if b, _ := os.ReadFile(path); string(b) != row.after {
			t.Errorf("after %+v: %q", row, b)
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) > 1 {
			t.Errorf("after %+v: left behind: %v, %v", row, entries, err)
		}
	}
}

func TestRedirect_SpecialFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := output.OpenRedirect(dir); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("directory: %v", err)
	}
	r, err := output.OpenRedirect(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(true); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Fatalf("%s was replaced: %v, %v", os.DevNull, info, err)
	}
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if r, err = output.OpenRedirect(link); err != nil {
		t.Fatal(err)
	}
	if _, err := r.File().WriteString("through"); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(false); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(target); string(b) != "through" {
		t.Errorf("the link's target holds %q", b)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
}
