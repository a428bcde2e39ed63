package output_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
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
		r, err := output.NewDirectories(nil).Redirect(path)
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
	if _, err := output.NewDirectories(nil).Redirect(dir); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("directory: %v", err)
	}
	r, err := output.NewDirectories(nil).Redirect(os.DevNull)
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
	if r, err = output.NewDirectories(nil).Redirect(link); err != nil {
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

// A durable output has its name on disk, and so have the directories created for it,
// whichever job created them. A synced directory is not synced again.
func TestRedirect_DurableNames(t *testing.T) {
	dir := t.TempDir()
	var synced []string
	dirs := output.NewDirectories(func(dir string) error {
		synced = append(synced, dir)
		return nil
	})
	open := func(name string) *output.Redirect {
		t.Helper()
		r, err := dirs.Redirect(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	maker, user := open("a/b/one"), open("a/two")
	for _, row := range []struct {
		r       *output.Redirect
		durable bool
		want    []string
	}{
		{r: user, durable: true, want: []string{"a", "."}},
		{r: maker, durable: true, want: []string{"a/b", "a"}},
		{r: open("a/b/three"), durable: true, want: []string{"a/b"}},
		{r: open("a/c/four"), durable: false},
		{r: open("five"), durable: true, want: []string{"."}},
	} {
		synced = nil
		if err := row.r.Commit(row.durable); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, name := range row.want {
			want = append(want, filepath.Join(dir, name))
		}
		if !slices.Equal(synced, want) {
			t.Errorf("synced %v, want %v", synced, want)
		}
	}
}

// A name that cannot be made durable is an error.
func TestRedirect_NameIsNotDurable(t *testing.T) {
	broken := errors.New("broken")
	dirs := output.NewDirectories(func(string) error { return broken })
	r, err := dirs.Redirect(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(true); !errors.Is(err, broken) {
		t.Errorf("Commit: %v", err)
	}
}

// Jobs may have the same name for their output: none fails, and the file has the whole
// output of one of them, also if they end together.
func TestRedirect_SameName(t *testing.T) {
	dir := t.TempDir()
	dirs, path := output.NewDirectories(nil), filepath.Join(dir, "out")
	var jobs sync.WaitGroup
	for range 16 {
		jobs.Go(func() {
			for range 50 {
				if err := writeOutput(dirs, path, "whole"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	jobs.Wait()
	if b, err := os.ReadFile(path); string(b) != "whole" {
		t.Errorf("the file has %q, %v", b, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// writeOutput is a job that writes text to its redirected output and succeeds.
func writeOutput(dirs *output.Directories, path, text string) error {
	r, err := dirs.Redirect(path)
	if err != nil {
		return err
	}
	defer r.Discard()
	if _, err := r.File().WriteString(text); err != nil {
		return err
	}
	return r.Commit(false)
}

// On a file system without unnamed files, outputs of the same name do not remove each
// other's temporary file.
func TestRedirect_SameTemporary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	for range 2 {
		f, name, err := output.CreateTemporary(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		defer func() {
			if _, err := os.Stat(name); err != nil {
				t.Error(err)
			}
		}()
	}
}
