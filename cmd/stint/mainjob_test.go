//go:build linux

package main_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The main job, on real input: every fourth .go file of the installed Go source tree
// (make example takes all) is compressed by gzip, two at a time, in three tiers by directory, under a
// rate limit. Stint is killed in the middle and resumed. Each output exists
// once, and is right; no job that was logged as done ran again.
func TestMainJob_CompressGoSource(t *testing.T) {
	root, out := goRoot(t), filepath.Join(t.TempDir(), "out")
	files := goFiles(t, root)
	files = everyNth(files, 4)
	t.Logf("%d files under %s", len(files), root)
	first := compress(t, root, out, files, "--joblog")
	log := filepath.Join(filepath.Dir(out), "log")
	// A line is about 50 bytes and the path: kill at about half.
	size := 0
	for _, file := range files {
		size += 50 + len(file)
	}
	if status := killAt(t, first, log, int64(size/2)); status != 137 {
		t.Fatalf("exit status %d: stint was not killed in the middle", status)
	}
	before := logged(t, log)
	if len(before) == 0 || len(before) >= len(files) {
		t.Fatalf("%d of %d jobs were done when stint was killed", len(before), len(files))
	}
	t.Logf("killed after %d jobs", len(before))
	second := compress(t, root, out, files, "--resume")
	r := runCmd(t, second, "")
	r.want(t, "", "", 0)
	after := logged(t, log)
	for seq := range files {
		if after[seq+1] != 1 {
			t.Errorf("job %d has %d lines in the log, want 1", seq+1, after[seq+1])
		}
	}
	checkCompressed(t, root, out, files)
	checkTiers(t, log, files)
}

// goRoot is where the Go source tree is.
func goRoot(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(root))
}

// compress is the command. flag is --joblog for the first run and --resume for
// the second.
func compress(t *testing.T, root, out string, files []string, flag string) *exec.Cmd {
	t.Helper()
	dir := filepath.Dir(out)
	args := []string{
		"run", "-j2", "--priority", "{1}", "--rate", "400/s", "--progress", "none", "--joblog", filepath.Join(dir, "log"),
	}
	if flag == "--resume" {
		args = append(args, flag)
	}
	in := filepath.Join(dir, "in")
	var list strings.Builder
	for _, file := range files {
		fmt.Fprintf(&list, "%s\t%s\n", tier(file), file)
	}
	write(t, in, list.String())
	args = append(args, "-a", in, "-C", `\t`, "--stdout", filepath.Join(out, "{2}.gz"), "gzip", "-c", "{2}")
	cmd := command(t, args...)
	cmd.Dir = root
	return cmd
}

// tier is the tier of a file by its directory: the compiler and the tools
// first, the tests of the toolchain last.
func tier(file string) string {
	switch {
	case strings.HasPrefix(file, "src/cmd/"):
		return "high"
	case strings.HasPrefix(file, "test/"):
		return "low"
	}
	return "normal"
}

// goFiles lists all .go files below root, by their paths relative to it.
func goFiles(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".go") {
			files = append(files, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 1000 {
		t.Fatalf("%d .go files below %s: that is no Go source tree", len(files), root)
	}
	return files
}

// everyNth returns every n-th of files, so that each directory, and with it
// each tier, keeps its share.
func everyNth(files []string, n int) []string {
	var some []string
	for i := 0; i < len(files); i += n {
		some = append(some, files[i])
	}
	return some
}

// checkCompressed counts the outputs, and unpacks and compares each.
func checkCompressed(t *testing.T, root, out string, files []string) {
	t.Helper()
	for _, file := range files {
		want, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if got := gunzip(t, filepath.Join(out, file+".gz")); !bytes.Equal(got, want) {
			t.Errorf("%s: unpacked to %d bytes, want %d", file, len(got), len(want))
		}
	}
	n := 0
	err := filepath.WalkDir(out, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil || n != len(files) {
		t.Errorf("%d outputs (%v), want %d and nothing else", n, err, len(files))
	}
}

func gunzip(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return nil
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return b
}

// checkTiers compares where in the log the jobs of each tier stand on average:
// higher tiers were done earlier, though their inputs come in another order.
func checkTiers(t *testing.T, log string, files []string) {
	t.Helper()
	sum, n := map[string]int{}, map[string]int{}
	for i, line := range strings.Split(read(t, log), "\n")[1:] {
		var seq int
		if _, err := fmt.Sscan(line, &seq); err == nil {
			sum[tier(files[seq-1])] += i
			n[tier(files[seq-1])]++
		}
	}
	mean := func(tier string) int { return sum[tier] / max(n[tier], 1) }
	t.Logf("mean place in the log: high %d, normal %d, low %d", mean("high"), mean("normal"), mean("low"))
	if mean("high") >= mean("normal") || mean("normal") >= mean("low") {
		t.Errorf("mean place in the log: high %d, normal %d, low %d", mean("high"), mean("normal"), mean("low"))
	}
}
