package joblog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/joblog"
)

// Open refuses a file that is not a job log and leaves it unchanged, even if it has a
// single line or no newline.
func TestOpen_LeavesForeignFilesAlone(t *testing.T) {
	for name, content := range map[string]string{
		"one line":        "my precious line\n",
		"no end of line":  "one-item",
		"binary":          strings.Repeat("\x00\xff", 500),
		"several lines":   "a\nb\nc\n",
		"nearly a header": "Seq\tHostess",
	} {
		for _, resume := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if log, err := joblog.Open(path, joblog.Config{Resume: resume}); err == nil {
				_ = log.Close()
				t.Errorf("%s: taken for a job log", name)
			}
			if got, err := os.ReadFile(path); string(got) != content || err != nil {
				t.Errorf("%s: now holds %q, %v", name, got, err)
			}
		}
	}
}

// Another list uses the same numbers again. Matched by command, the jobs of all lists
// stay done.
func TestDone_ByCommandOverSeveralLists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	cfg := joblog.Config{Resume: true, Match: joblog.MatchCommand}
	for _, list := range [][]string{{"a", "b"}, {"x", "y"}} {
		log := open(t, path, cfg)
		for i, command := range list {
			if err := log.Append(&joblog.Record{Seq: i + 1, Command: command}); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	log := open(t, path, cfg)
	for i, command := range []string{"a", "b", "x", "y"} {
		if done, err := log.Done(i+1, command); !done || err != nil {
			t.Errorf("command %q: done is %v, %v", command, done, err)
		}
	}
}
