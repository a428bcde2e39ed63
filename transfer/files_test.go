package transfer_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// Names that are not patterns stand for themselves only, also if their escaped form is a name.
func TestE2_FilesNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a*", `a\*`, "ab", "d/e"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, name, nil)
	}
	if got, err := transfer.FilesNamed("a*", "d"); err != nil || !slices.Equal(got.Files, []string{"a*", "d/e"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := transfer.FilesNamed("a?"); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestE2_FilesOfPatterns(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.jpg", "b.jpg", "c.txt", "d/e.jpg", "d/f/g.txt", "[x].txt", "x.txt"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, name, nil)
	}
	for _, dir := range []string{"empty", "d/empty"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "d", "d/loop": "..", "l.jpg": "a.jpg"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		patterns, want []string
		left           []string
		err            error
	}{
		{patterns: []string{"c.txt", "*.jpg"}, want: []string{"c.txt", "a.jpg", "b.jpg", "l.jpg"}},
		{patterns: []string{"d"}, want: []string{"d/e.jpg", "d/f/g.txt"}, left: []string{"d/loop"}},
		{patterns: []string{"link"}, want: []string{"link/e.jpg", "link/f/g.txt"}, left: []string{"link/loop"}},
		{patterns: []string{"a.jpg", "a.*", "./a.jpg"}, want: []string{"a.jpg"}},
		{patterns: []string{`\[x\].txt`}, want: []string{"[x].txt"}},
		{patterns: []string{"[x].txt"}, want: []string{"[x].txt"}}, // and not x.txt
		{patterns: []string{"[a-c].txt"}, want: []string{"c.txt"}},
		{patterns: []string{"a.jpg", "none"}, err: queue.ErrInvalid},
		{patterns: []string{"empty"}, err: queue.ErrInvalid},
		{patterns: []string{"["}, err: queue.ErrInvalid},
		{patterns: []string{strings.Repeat("x", 300)}, err: syscall.ENAMETOOLONG}, // and not that there is none
		{patterns: []string{"a.jpg/x"}, err: syscall.ENOTDIR},
		{},
	} {
		got, err := transfer.Files(test.patterns...)
		if !slices.Equal(got.Files, test.want) || !slices.Equal(got.Left, test.left) || !errors.Is(err, test.err) {
			t.Errorf("%q: %q, error %v; want %q, left %q, %v", test.patterns, got, err, test.want, test.left, test.err)
		}
	}
}

// A directory that cannot be read is left out with its error, and does not keep others from being found. Any user can
// have one whose path is too long for the kernel.
func TestE4_FilesOfAnUnreadableDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("d", 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, "d/a", nil)
	write(t, "d/z", nil)
	deep(t, "d")
	got, err := transfer.Files("d")
	if err != nil || !slices.Equal(got.Files, []string{"d/a", "d/z"}) || len(got.Unread) != 1 ||
		!errors.Is(got.Unread[0], syscall.ENAMETOOLONG) {
		t.Errorf("%+v, %v", got, err)
	}
}

// deep makes directories below one until their path is longer than the kernel takes.
func deep(t *testing.T, dir string) {
	t.Helper()
	at, err := os.OpenRoot(dir)
	name := strings.Repeat("x", 250)
	for range 17 {
		if err == nil {
			err = at.Mkdir(name, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		above := at
		at, err = above.OpenRoot(name)
		above.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	at.Close()
}
