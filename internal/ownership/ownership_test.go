//go:build unix

package ownership_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/ownership"
)

// otherUser is the ID of a user that is not the one of this process.
const otherUser = 65534

// give makes otherUser the owner of a path. If this process is not permitted to do that,
// it logs it and reports false.
func give(t *testing.T, path string) bool {
	t.Helper()
	if err := os.Lchown(path, otherUser, -1); err != nil {
		t.Logf("NOT SHOWN: this user cannot make files of another one: %v", err)
		return false
	}
	return true
}

// directory makes a directory with a mode, independent of the umask.
func directory(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// refused checks that the error names the problem, the path and what to do.
func refused(t *testing.T, err error, says ...string) {
	t.Helper()
	if !errors.Is(err, ownership.ErrForeign) {
		t.Fatalf("error %v, want one that is ErrForeign", err)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %q, want %q in it", err, want)
		}
	}
}

func TestC6_DirectoriesOthersMayWriteTo(t *testing.T) {
	for mode, accepted := range map[os.FileMode]bool{
		0o700: true, 0o750: true, 0o755: true, 0o500: true,
		0o777: false, 0o770: false, 0o775: false, 0o707: false, 0o720: false, 0o702: false, 0o777 | os.ModeSticky: false,
	} {
		dir := directory(t, mode)
		err := ownership.Directory(dir)
		if accepted && err != nil {
			t.Errorf("mode %v: %v", mode, err)
		}
		if !accepted {
			refused(t, err, dir, fmt.Sprintf("has mode %#o", mode.Perm()), "chmod go-w "+dir)
		}
	}
}

func TestC6_DirectoriesOfOtherUsers(t *testing.T) {
	dir := directory(t, 0o700)
	if !give(t, dir) {
		return
	}
	refused(t, ownership.Directory(dir), dir+" belongs to user 65534", "mode 0700", "runs as user", "run it as that user")

	dir = directory(t, 0o700)
	file := filepath.Join(dir, "000002.log")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ownership.Directory(dir); err != nil {
		t.Errorf("a directory with a file of its owner: %v", err)
	}
	give(t, file)
	refused(t, ownership.Directory(dir), file+" belongs to user 65534", "move it elsewhere")
}

func TestC6_DirectoriesByLinks(t *testing.T) {
	dir := directory(t, 0o700)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := ownership.Directory(link); err != nil {
		t.Errorf("a link of the directory's owner: %v", err)
	}
	if give(t, link) {
		refused(t, ownership.Directory(link), link+" belongs to user 65534", "choose another directory")
	}
	if err := os.Symlink(directory(t, 0o777), link+"2"); err != nil {
		t.Fatal(err)
	}
	refused(t, ownership.Directory(link+"2"), "has mode 0777")
}

func TestC6_DirectoriesAbove(t *testing.T) {
	dir := filepath.Join(directory(t, 0o777), "below", "data")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	refused(t, ownership.Above(dir), "mode 0777", "can replace "+dir)
	above := filepath.Dir(filepath.Dir(dir))
	if err := os.Chmod(above, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if err := ownership.Above(dir); err != nil && strings.Contains(err.Error(), above+" ") {
		t.Errorf("a directory with the sticky bit: %v", err)
	}
	if give(t, above) {
		refused(t, ownership.Above(dir), above+" belongs to user 65534")
	}
}

func TestC6_FilesWithSecrets(t *testing.T) {
	check := func(path string) error {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return ownership.File(f)
	}
	dir := directory(t, 0o700)
	path := filepath.Join(dir, "token")
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := check(path); err != nil {
		t.Errorf("mode 0600: %v", err)
	}
	if err := check(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o660} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		refused(t, check(path), "chmod 600 "+path)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if give(t, path) {
		refused(t, check(path), path+" belongs to user 65534")
	}
}
