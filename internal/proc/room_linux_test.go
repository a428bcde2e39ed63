package proc //nolint:testpackage // the limits of a test process cannot be set

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The room is that of the group with the least, among a group and those above it, in both versions
// of control groups.
func TestGroupRoom(t *testing.T) {
	mount := t.TempDir()
	for file, text := range map[string]string{
		"a/pids.max": "100\n", "a/pids.current": "30\n", "a/b/pids.max": "max\n", "a/b/pids.current": "20\n",
		"a/c/pids.max": "10\n", "a/c/pids.current": "12\n", "pids/d/pids.max": "50\n", "pids/d/pids.current": "1\n",
	} {
		path := filepath.Join(mount, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for groups, want := range map[string]int{
		"0::/a/b\n":                      70,
		"0::/a/c\n":                      0,
		"0::/\n":                         math.MaxInt,
		"4:memory:/a/c\n3:pids:/d/e\n":   49,
		"3:pids:/d\n1:cpu:/a\n0::/a/b\n": 49,
		"":                               math.MaxInt,
		"no line of a list":              math.MaxInt,
	} {
		if got := groupRoom(groups, mount); got != want {
			t.Errorf("%q: room for %d, want %d", groups, got, want)
		}
	}
}

func TestThreadsOf(t *testing.T) {
	if n := threadsOf(os.Geteuid()); n < 1 {
		t.Errorf("this user has %d threads", n)
	}
	if n := threadsOf(-2); n != 0 {
		t.Errorf("a user that does not exist has %d threads", n)
	}
	if n := userRoom(0); n != math.MaxInt {
		t.Errorf("root has room for %d", n)
	}
}
