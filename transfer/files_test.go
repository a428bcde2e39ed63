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

// Names that are no patterns stand for nothing else, also if what escapes them is a name.
func TestE2_FilesNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a*", `a\*`, "ab", "d/e"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, name, nil)
	}
	if got, _, err := transfer.FilesNamed("a*", "d"); err != nil || !slices.Equal(got, []string{"a*", "d/e"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, _, err := transfer.FilesNamed("a?"); !errors.Is(err, queue.ErrInvalid) {
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
		got, left, err := transfer.Files(test.patterns...)
		if !slices.Equal(got, test.want) || !slices.Equal(left, test.left) || !errors.Is(err, test.err) {
			t.Errorf("%q: %q, left %q, error %v; want %q, %q, %v", test.patterns, got, left, err, test.want, test.left, test.err)
		}
	}
}
