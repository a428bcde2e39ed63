//go:build linux

package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"
)

// privateMiB returns the memory that a process has resident without the pages of files, such as
// the program itself, which processes share; 0 if it has ended.
func privateMiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	found := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil { // it has ended, and has not been waited for
		return 0
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// privateMax is the most memory that a side may have, in MiB. The race detector takes several
// times what the program needs.
func privateMax() int {
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return 512
	}
	return 40
}

// measured runs an upload that succeeds, and checks the memory of both sides.
func (r *receiving) measured(cmd *exec.Cmd) {
	r.t.Helper()
	cmd.Stderr = r.t.Output()
	start(r.t, cmd)
	ended := make(chan int, 1)
	go func() { ended <- finish(r.t, cmd) }()
	client, server := 0, 0
	for status := -1; status < 0; {
		select {
		case status = <-ended:
			if status != 0 {
				r.t.Fatalf("exit status %d", status)
			}
		case <-time.After(20 * time.Millisecond):
			client = max(client, privateMiB(r.t, cmd.Process.Pid))
			server = max(server, privateMiB(r.t, r.cmd.Process.Pid))
		}
	}
	r.t.Logf("the client had at most %d MiB, and the server %d MiB", client, server)
	if most := privateMax(); max(client, server) > most || min(client, server) == 0 {
		r.t.Errorf("the client had %d MiB and the server %d MiB, want %d MiB at most", client, server, most)
	}
}

// 2,000 files of 256 KiB arrive, each with its content, and neither side needs memory for them.
func TestE5_ManyFiles(t *testing.T) {
	t.Parallel()
	const files, size = 2000, 256 << 10
	r := receive(t)
	source := filepath.Join(r.dir, "many")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, size)
	fill := func(i int) {
		_, _ = rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}).Read(content)
	}
	for i := range files {
		fill(i)
		if err := os.WriteFile(filepath.Join(source, strconv.Itoa(i)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.measured(r.uploads("many", "-j8", "--progress", "none"))
	for i := range files {
		fill(i)
		got, err := os.ReadFile(filepath.Join(r.dir, "inbox", strconv.Itoa(i)))
		if err != nil || !bytes.Equal(got, content) {
			t.Fatalf("file %d has %d bytes, equal: %t, %v", i, len(got), bytes.Equal(got, content), err)
		}
	}
	received, err := os.ReadDir(filepath.Join(r.dir, "inbox"))
	if err != nil || len(received) != files+1 { // and the directory of unfinished ones
		t.Errorf("the server has %d names, %v", len(received), err)
	}
}

// The memory of both sides does not grow with the size of a file.
func TestE5_MemoryOfABigFile(t *testing.T) {
	t.Parallel()
	const size = 512 << 20
	r := receive(t)
	path := filepath.Join(r.dir, "big")
	write(t, path, "")
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	r.measured(r.uploads("big", "--lanes", "8", "--verify", "--progress", "none"))
	info, err := os.Stat(filepath.Join(r.dir, "inbox", "big"))
	if err != nil || info.Size() != size {
		t.Errorf("the file has %v, %v", info, err)
	}
}
