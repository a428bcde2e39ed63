//go:build linux

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readme is the documentation's first page, and story its part about a killed server:
// shell commands, in order.
const readme = "../../README.md"

var story = regexp.MustCompile("(?ms)^```sh\n(stint serve &\n.*?)^```$")

// The README's commands about a killed server work as written.
func TestC6_ServeStory(t *testing.T) {
	pipe := story.FindStringSubmatch(read(t, readme))
	if pipe == nil {
		t.Fatalf("%s has no block of shell commands that begins with stint serve", readme)
	}
	dir := t.TempDir()
	// The program's name as a reader has it: it becomes the test binary, with the
	// same process number.
	wrapper := "#!/bin/sh\nexec \"$STINT_TEST_BINARY\" \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "stint"), []byte(wrapper), 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A shell that is not a person's has no job to end with its terminal.
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", pipe[1]+"kill $!; wait $!")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asStint+"=1", "STINT_TEST_BINARY="+self, "PATH="+dir+":"+os.Getenv("PATH"),
		"STINT_PATIENCE=60s", "GORACE=atexit_sleep_ms=0")
	r := runCmd(t, cmd, "")
	if r.status != 0 {
		t.Fatalf("it ends with %d, having said\n%s\n%s", r.status, r.stdout, r.stderr)
	}
	log := regexp.MustCompile(`\n(begun\n)?\[attempt 2, .*\]\nbegun\nfinished\n`)
	if !log.MatchString(r.stdout) || strings.Count(r.stdout, "serving unix:stint-data/stint.sock") != 2 ||
		!strings.Contains(r.stdout, "  succeeded ") || !strings.Contains(r.stdout, "lose") {
		t.Errorf("it has said\n%s", r.stdout)
	}
}
