//go:build linux

package shm_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stintgo/stint"
)

// A scheduler's own limit applies on top of the shared one, and Stats and Why report how
// many slots all processes hold, and which processes.
func TestB8_StatsAndWhyNameOtherProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	r := open(t, path, geometry)
	s := stint.New(1, stint.Config{Slots: r.Slots(0)})
	p, ok := s.TryAcquire(t.Context())
	if _, above := s.TryAcquire(t.Context()); !ok || above {
		t.Fatal("the scheduler's own limit is not 1")
	}
	if why := s.Why(); len(why) != 1 || why[0].Code != stint.CodeMax {
		t.Errorf("at its own limit: %+v", why)
	}
	p.Release()

	var numbers []string
	for range geometry.Slots[0] {
		p := start(t, "hold", path)
		if !p.await(1) {
			t.Fatal("a process got no slot")
		}
		numbers = append(numbers, strconv.Itoa(p.cmd.Process.Pid))
	}
	why := s.Why()
	if len(why) != 1 || why[0].Code != stint.CodeShared || why[0].Limit != 3 || why[0].Running != 3 {
		t.Fatalf("at the shared limit: %+v", why)
	}
	for _, n := range numbers {
		if !strings.Contains(why[0].By, "["+n+"]") {
			t.Errorf("%q does not name process %s", why[0].By, n)
		}
	}
	goAcquire(t.Context(), s)
	until(t, "no caller waits", func() bool { return s.Stats().Queued == 1 })
	got := s.Stats()
	if u := got.Shared; got.Running != 0 || u.Running != 3 || u.Waiting != 1 || len(u.Holders) != 4 {
		t.Errorf("%+v, shared %+v", got, u)
	}
	if got := s.Waiting(); len(got) != 1 || !strings.Contains(got[0].Reasons[0].By, numbers[0]) {
		t.Errorf("the waiting call: %+v", got)
	}
}

// A process that has ended, and whose child keeps its slot, is not named as the holder:
// the child is.
func TestB8_StatsNameTheSurvivor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	shell := start(t, "exec shell", path)
	shell.send(t, "exec 4<&0; cat <&4 >/dev/null 2>&1 & printf $!; echo .")
	child := shell.readUntil(t, ".")
	signed := "shell[" + strconv.Itoa(shell.cmd.Process.Pid) + "]"
	r := open(t, path, geometry)
	s := stint.New(0, stint.Config{Slots: r.Slots(0)})
	holder := func() string {
		t.Helper()
		u := s.Stats().Shared
		if u == nil || len(u.Holders) != 1 || u.Holders[0].Slots != 1 {
			t.Fatalf("shared: %+v, want one holder of a slot", u)
		}
		return u.Holders[0].Name
	}
	if got := holder(); got != signed {
		t.Errorf("the holder is %s, want %s", got, signed)
	}
	until(t, "the child is no cat yet", func() bool {
		name, err := os.ReadFile("/proc/" + child + "/comm")
		return err == nil && string(name) == "cat\n"
	})
	shell.kill()
	want := "cat[" + child + "] (outlived " + signed + ")"
	for range 2 { // the second time from the cache
		if got := holder(); got != want {
			t.Errorf("the holder is %s, want %s", got, want)
		}
	}
	shell.in.Close()
	until(t, "holders are listed although no process lives", func() bool { return len(s.Stats().Shared.Holders) == 0 })
}
