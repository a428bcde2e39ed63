package serve_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// attempt returns a task in attempt n, with the steps that a store keeps.
func attempt(id queue.ID, n int) *queue.Task {
	t := &queue.Task{ID: id, Steps: []queue.Step{{On: queue.OnSubmit}}}
	for range n {
		if len(t.Steps) == queue.MaxSteps {
			t.Steps = slices.Delete(t.Steps, 1, 2)
		}
		t.Steps = append(t.Steps, queue.Step{On: queue.OnClaim, At: time.Unix(0, 0).UTC()})
	}
	return t
}

func logs(t *testing.T, each, all int64) (l serve.Logs, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "logs")
	l, err := serve.OpenLogs(dir, each, all)
	if err != nil {
		t.Fatal(err)
	}
	return l, dir
}

// A log has all attempts in order, and only the end of many.
func TestC4_LogsAreBounded(t *testing.T) {
	const each = 1000
	l, dir := logs(t, each, 1<<20)
	id := queue.ID{1}
	for n := range 100 {
		if err := l.Write(attempt(id, n+1), strings.Repeat("x", 99)+"\n"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, server.LogName(id)))
		if err != nil {
			t.Fatal(err)
		}
		head := fmt.Sprintf("[attempt %d, 1970-01-01T00:00:00Z]\n", n+1)
		if n+2 >= queue.MaxSteps { // those of earlier attempts may be gone
			head = fmt.Sprintf("[attempt %d or later, 1970-01-01T00:00:00Z]\n", queue.MaxSteps-1)
		}
		switch {
		case n == 0 && string(text) != strings.Repeat("x", 99)+"\n":
			t.Errorf("the first attempt is %q", text)
		case n > 0 && !strings.HasSuffix(string(text), "\n"+head+strings.Repeat("x", 99)+"\n"):
			t.Errorf("attempt %d ends the log with %q", n+1, text[max(len(text)-150, 0):])
		case len(text) > each+150:
			t.Errorf("after %d attempts the log has %d bytes", n+1, len(text))
		case n == 99 && !strings.HasPrefix(string(text), "[what was before this has been dropped]\n"):
			t.Errorf("the log begins with %q", text[:50])
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v", entries, err)
	}
}

// The stored tail of an output is in the log after a restart, once, and a tail or a log written in
// part is removed.
func TestC6_TailsOfAKilledServer(t *testing.T) {
	l, dir := logs(t, 1000, 1<<20)
	ids := []queue.ID{{1}, {2}, {3}}
	for _, id := range ids[:2] {
		if err := l.Write(attempt(id, 1), "beginning\n", func() {
			if id == ids[0] {
				l.KeepTail(t, id, "an older end\n")
				l.KeepTail(t, id, "end\n")
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	l.KeepTail(t, ids[2], "of a task that is forgotten")
	for _, part := range []string{server.LogName(ids[1]) + ".tail.new", server.LogName(ids[0]) + ".new"} {
		if err := os.WriteFile(filepath.Join(dir, part), []byte("hal"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := serve.OpenLogs(dir, 1000, 1<<20); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"beginning\nend\n", "beginning\n"} {
			if text, err := os.ReadFile(filepath.Join(dir, server.LogName(ids[i]))); err != nil || string(text) != want {
				t.Errorf("log %d is %q, %v; want %q", i, text, err, want)
			}
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("there are %v, %v; want two logs", entries, err)
		}
	}
}

// The tail of an output whose last write has failed is in the log after the next attempt, and after
// the next start; it goes with the log of a forgotten task.
func TestC4_TailsOfFailedWrites(t *testing.T) {
	l, dir := logs(t, 1000, 1<<20)
	again, later, forgotten := queue.ID{1}, queue.ID{2}, queue.ID{3}
	for _, id := range []queue.ID{again, later, forgotten} {
		l.FailAtEnd(t, attempt(id, 1), "beginning\n", "end\n")
	}
	if err := l.Write(attempt(again, 2), "second\n"); err != nil {
		t.Fatal(err)
	}
	l.Remove(forgotten)
	if _, err := serve.OpenLogs(dir, 1000, 1<<20); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[queue.ID]string{
		again: "beginning\nend\n[attempt 2, 1970-01-01T00:00:00Z]\nsecond\n",
		later: "beginning\nend\n",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, server.LogName(id))); err != nil || string(text) != want {
			t.Errorf("the log is %q, %v; want %q", text, err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("there are %v, %v; want two logs", entries, err)
	}
}

// The logs of forgotten tasks are removed, and the oldest of finished tasks if all exceed
// the limit. Other files stay.
func TestC4_LogsGoWithTheirTasks(t *testing.T) {
	l, dir := logs(t, 1000, 250)
	q := queue.New(memstore.New(memstore.Config{}), queue.Config{})
	var ids []queue.ID
	for range 5 {
		receipt, err := queue.Kind[int]("k").Submit(t.Context(), q, 0, queue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, receipt.ID)
	}
	cancel := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: ids[1:]}}
	if n, err := q.Command(t.Context(), cancel); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	forgotten := q.NewID()
	old := time.Unix(1e9, 0)
	for i, id := range append(ids, forgotten) {
		if err := l.Write(attempt(id, 1), strings.Repeat("x", 100)); err != nil {
			t.Fatal(err)
		}
		at := old.Add(time.Duration(i) * time.Hour)
		if err := os.Chtimes(filepath.Join(dir, server.LogName(id)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Tidy(t.Context(), q)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	// The first task is not finished; of the others, two logs are within the limit.
	want := []string{server.LogName(ids[0]), server.LogName(ids[3]), server.LogName(ids[4]), "STORE", "other"}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// A server that is started with another store, twice, keeps the logs that it does not know. The
// next cleanup for the store of the logs removes those of forgotten tasks again.
func TestC4_LogsOfAnotherStore(t *testing.T) {
	_, dir := logs(t, 1000, 1<<20)
	submitted := func(q *queue.Queue) queue.ID {
		t.Helper()
		receipt, err := queue.Kind[int]("k").Submit(t.Context(), q, 0, queue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return receipt.ID
	}
	right := queue.New(memstore.New(memstore.Config{}), queue.Config{})
	wrong := queue.New(memstore.New(memstore.Config{}), queue.Config{})
	first, second, grouped := submitted(right), submitted(right), submitted(right)
	for _, start := range []struct {
		store string
		q     *queue.Queue
		makes queue.ID   // a log, after the first cleanup
		keeps []queue.ID // the logs
	}{
		{"right", right, first, []queue.ID{first}},
		{"wrong", wrong, submitted(wrong), []queue.ID{first}},
		{"wrong", wrong, right.NewID(), []queue.ID{first}},
		{"right", right, second, []queue.ID{first, second}},
		{"right", right, second, []queue.ID{first, second}},
		{"copy", right, second, []queue.ID{first, second}}, // that knows all tasks
		{"copy", right, right.NewID(), []queue.ID{first, second}},
		{"copy\ngroup", right, grouped, []queue.ID{first, second, grouped}}, // right has the tasks of the group, too
		{"copy", wrong, right.NewID(), []queue.ID{first, second, grouped}},  // started without the group
		{"group\ncopy", right, right.NewID(), []queue.ID{first, second, grouped}},
	} {
		l, err := serve.OpenLogsOf(dir, 1000, 1<<20, start.store)
		if err != nil {
			t.Fatal(err)
		}
		l.Tidy(t.Context(), start.q)
		if err := l.Write(attempt(start.makes, 1), "x"); err != nil {
			t.Fatal(err)
		}
		l.Tidy(t.Context(), start.q)
		for _, id := range start.keeps {
			if _, err := os.Stat(filepath.Join(dir, server.LogName(id))); err != nil {
				t.Errorf("store %s: %v", start.store, err)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 { // the three logs, and the names of the stores
		t.Errorf("%v, %v", entries, err)
	}
}

// Readers of a log are notified of writes to it and of the end of its task, and of
// nothing else.
func TestC4_ReadersOfLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := logs(t, 1000, 1<<20)
		q := queue.New(memstore.New(memstore.Config{}), queue.Config{})
		ctx, stop := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { l.Watch(ctx, q) })
		synctest.Wait()
		var ids [2]queue.ID
		for i := range ids {
			receipt, err := queue.Kind[int]("k").Submit(ctx, q, 0, queue.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ids[i] = receipt.ID
		}
		mine, leaveMine := l.Follow(ids[0])
		same, leaveSame := l.Follow(ids[0])
		other, leaveOther := l.Follow(ids[1])
		notified := func(what string, want ...bool) {
			t.Helper()
			synctest.Wait()
			for i, news := range []<-chan struct{}{mine, same, other} {
				if got := len(news) == 1; got != want[i] {
					t.Errorf("after %s, reader %d notified: %t", what, i, got)
				}
				for len(news) > 0 {
					<-news
				}
			}
		}
		notified("nothing", false, false, false)
		if err := l.Write(attempt(ids[0], 1), ""); err != nil {
			t.Fatal(err)
		}
		notified("an attempt", true, true, false)
		if err := l.Write(attempt(ids[0], 1), "text", func() { notified("another", true, true, false) }); err != nil {
			t.Fatal(err)
		}
		notified("a write", true, true, false)
		leaveSame()
		for i, want := range [][]bool{{true, false, false}, {false, false, true}} {
			cancel := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: ids[i : i+1]}}
			if n, err := q.Command(ctx, cancel); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			notified("an end", want...)
		}
		leaveMine()
		leaveOther()
		stop()
		watching.Wait()
	})
}

func TestC6_OnlyThisMachine(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, "127.0.0.1:0": true, "localhost:7117": true, "[::1]:7117": true, "127.1.2.3:1": true,
		":7117": false, "0.0.0.0:7117": false, "[::]:7117": false, "192.168.1.2:7117": false, "example.org:80": false,
		"7117": false,
	} {
		if err := serve.CheckLoopback("--listen", address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// A directory in use is retried for a limited time; other errors are not retried.
func TestC6_DirectoryOfADyingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locked, broken := fmt.Errorf("locked: %w", syscall.EAGAIN), errors.New("broken")
		for _, end := range []error{nil, broken} {
			tries := 0
			err := serve.RetryWhile(t.Context(), time.Second, syscall.EAGAIN, func() error {
				if tries++; tries < 5 {
					return locked
				}
				return end
			})
			if !errors.Is(err, end) || tries != 5 {
				t.Errorf("%v after %d tries, want %v after 5", err, tries, end)
			}
		}
		began := time.Now()
		err := serve.RetryWhile(t.Context(), time.Second, syscall.EAGAIN, func() error { return locked })
		if !errors.Is(err, locked) || time.Since(began) != time.Second {
			t.Errorf("of what stays locked: %v", err)
		}
	})
}

// TestC6_DirectoryThatIsProbed: InUse of another process locks the directory for a moment. A server that starts
// then tries again, also without patience; a directory that stays locked is refused.
func TestC6_DirectoryThatIsProbed(t *testing.T) {
	dir := t.TempDir()
	probe, err := os.Create(filepath.Join(dir, "LOCK"))
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	lock := func(how int) {
		if err := syscall.Flock(int(probe.Fd()), how); err != nil {
			t.Error(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		cfg := serve.Config{Dir: dir, Store: "redis://a"}
		lock(syscall.LOCK_SH)
		if err := serve.LockDir(t.Context(), &cfg); !errors.Is(err, syscall.EAGAIN) {
			t.Errorf("a directory that stays locked: %v", err)
		}
		var probing sync.WaitGroup
		defer probing.Wait()
		probing.Go(func() {
			time.Sleep(time.Millisecond)
			lock(syscall.LOCK_UN)
		})
		if err := serve.LockDir(t.Context(), &cfg); err != nil {
			t.Errorf("a directory that was locked for a moment: %v", err)
		}
	})
}
