//go:build linux

package isolate_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
)

// A log has the whole output up to the limit; of a longer one it has the beginning, the
// number of missing bytes, and the end.
func TestC4_LogHasBeginningAndEnd(t *testing.T) {
	const limit = 1000
	for lines := range 300 {
		var l log
		script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); done; exit 3", lines*7%301)
		_, err := run(t.Context(), isolate.Config{Log: l.open, Output: limit}, sh(script))
		if err == nil {
			t.Fatal("it has not failed")
		}
		var all strings.Builder
		for i := range lines * 7 % 301 {
			fmt.Fprintf(&all, "line %d\n", i)
		}
		got := l.String()
		if all.Len() <= limit {
			if got != all.String() {
				t.Fatalf("of %d bytes the log has %q", all.Len(), got)
			}
			continue
		}
		const notice = "[the limit on output is reached: the last 500 bytes follow when the attempt ends]\n"
		begins, rest, _ := strings.Cut(got, notice)
		var missing int
		if _, err := fmt.Sscanf(rest, "[%d bytes are missing here]\n", &missing); err != nil {
			t.Fatalf("of %d bytes the log has %q", all.Len(), got)
		}
		_, ends, _ := strings.Cut(rest, "here]\n")
		begins = strings.TrimSuffix(begins, "\n") // added by the log, or part of the output
		whole := strings.TrimSuffix(all.String()[:limit/2], "\n")
		if begins != whole || !strings.HasSuffix(all.String(), "\n"+ends) || len(ends) > limit/2 ||
			limit/2+missing+len(ends) != all.Len() {
			t.Fatalf("of %d bytes the log has %d at first, %d missing, and then %q", all.Len(), len(begins), missing, ends)
		}
	}
}

// keeping is a log that implements [isolate.TailKeeper].
type keeping struct {
	log
	tails chan string
}

func (k *keeping) KeepTail(text []byte) error {
	k.tails <- string(text)
	return nil
}

// KeepTail receives the end of an output beyond the limit while the attempt runs.
func TestC4_EndIsKeptWhileItRuns(t *testing.T) {
	k := &keeping{tails: make(chan string, 100)} // one in a second
	gate := file(t)
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		open := func(context.Context, *queue.Task) (io.WriteCloser, error) { return k, nil }
		_, err := run(t.Context(), isolate.Config{Log: open, Output: 100},
			sh("head -c 1000 /dev/zero | tr '\\0' x; echo; echo last words; read line < "+gate))
		ended <- err
	}()
	const want = "[912 bytes are missing here]\n" + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\nlast words\n"
	for tail := ""; tail != want; { // on a slow machine, shorter tails may come first
		tail = <-k.tails
	}
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(k.String(), want) {
		t.Errorf("in the end the log is %q", k.String())
	}
}
