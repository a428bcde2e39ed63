//go:build linux

package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/isolate"
)

// The versions of two builds.
const (
	oldVersion = "v0.8.0"
	newVersion = "v0.9.0"
)

// TestC11_RollingUpgrade replaces the servers of a store by those of another version, one by
// one and the leader last, while tasks are submitted at all of them. No accepted task is
// lost, every task runs once, and stint nodes shows the versions.
func TestC11_RollingUpgrade(t *testing.T) {
	dir := t.TempDir()
	before, after := build(t, dir, oldVersion), build(t, dir, newVersion)
	for kind, url := range databases(t) {
		t.Run(kind, func(t *testing.T) { upgrade(t, url, before, after) })
	}
}

// build builds stint with a version.
func build(t *testing.T, dir, version string) (program string) {
	t.Helper()
	program = filepath.Join(dir, "stint-"+version)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program,
		"-ldflags", "-s -w -X github.com/stintgo/stint/internal/version.linked="+version, ".")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, said)
	}
	return program
}

func upgrade(t *testing.T, url, before, after string) {
	t.Helper()
	const servers = 3
	var all []*served
	for range servers {
		s := &served{t: t, dir: t.TempDir(), program: before}
		s.start("--store", url)
		all = append(all, s)
	}
	wantVersions(t, all[0], oldVersion, oldVersion, oldVersion)
	w := &workload{out: filepath.Join(t.TempDir(), "out")}
	for _, s := range all {
		store, err := httpstore.Open("unix:"+filepath.Join(s.dir, "stint-data", "stint.sock"), httpstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		w.stores = append(w.stores, store)
	}
	ctx, stop := context.WithCancel(t.Context())
	var submitting sync.WaitGroup
	submitting.Go(func() {
		if err := w.run(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	want := slices.Repeat([]string{oldVersion}, servers)
	for i, s := range []*served{all[1], all[2], all[0]} { // the first one leads
		s.stop()
		s.program = after
		s.start("--store", url)
		want[i] = newVersion
		wantVersions(t, all[2], want...)
		w.await(t, 10) // more of them
	}
	stop()
	submitting.Wait()
	w.check(t, all[1])
	for _, s := range all {
		s.stop()
	}
}

// wantVersions waits until stint nodes lists the servers with these versions, in any order,
// and one that leads.
func wantVersions(t *testing.T, at *served, want ...string) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	var said string
	for range 600 { // each takes some milliseconds
		var got []string
		leads := 0
		said = at.stint("nodes", "--json").stdout
		for line := range strings.Lines(said) {
			var node struct {
				Version string
				Leads   bool
				Address string
			}
			if err := json.Unmarshal([]byte(line), &node); err != nil {
				t.Fatal(err)
			}
			if node.Address == "" {
				continue // it has ended
			}
			got = append(got, node.Version)
			if node.Leads {
				leads++
			}
		}
		slices.Sort(got)
		if leads == 1 && slices.Equal(got, want) {
			return
		}
	}
	t.Errorf("the nodes are not of the versions %v:\n%s", want, said)
}

// workload submits commands that write their IDs to a file.
type workload struct {
	out    string
	stores []*httpstore.Store // the same one, through different servers

	mu       sync.Mutex // guards accepted and changed
	accepted []queue.ID
	changed  chan struct{} // closed when accepted changes; nil if nothing waits
}

// run submits a task at a time, at one server after the other, until ctx ends. It repeats a
// call until it is answered.
func (w *workload) run(ctx context.Context) error {
	payload, err := json.Marshal(isolate.Command{Args: []string{"sh", "-c", `echo $STINT_TASK >> "$0"`, w.out}})
	if err != nil {
		return err
	}
	ids := new(queue.IDs)
	for n := 0; ctx.Err() == nil; {
		task := queue.NewTask{ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "command", Payload: payload}}
		for {
			n++
			_, err := w.stores[n%len(w.stores)].Submit(ctx, time.Now(), []queue.NewTask{task})
			if err == nil {
				w.accept(task.ID)
				break
			}
			if ctx.Err() != nil || !errors.Is(err, queue.ErrUnavailable) {
				return err
			}
		}
		pause, end := context.WithTimeout(ctx, 50*time.Millisecond)
		<-pause.Done()
		end()
	}
	return nil
}

func (w *workload) accept(id queue.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted = append(w.accepted, id)
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// await waits until more further tasks are accepted.
func (w *workload) await(t *testing.T, more int) {
	t.Helper()
	w.mu.Lock()
	until := len(w.accepted) + more
	for len(w.accepted) < until {
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("no more tasks are accepted")
		}
		w.mu.Lock()
	}
	w.mu.Unlock()
}

// check waits for all tasks, and checks that each has run once.
func (w *workload) check(t *testing.T, at *served) {
	t.Helper()
	runs := make(map[string]int)
	for part := range slices.Chunk(w.accepted, 100) {
		args := []string{"wait"}
		for _, id := range part {
			args = append(args, id.String())
		}
		at.stint(args...).want(t, "", "", 0)
	}
	text, err := os.ReadFile(w.out)
	if err != nil {
		t.Fatal(err)
	}
	for id := range strings.FieldsSeq(string(text)) {
		runs[id]++
	}
	for _, id := range w.accepted {
		if n := runs[id.String()]; n != 1 {
			t.Errorf("task %s has run %d times", id, n)
		}
	}
	t.Logf("%d tasks were submitted during the upgrade", len(w.accepted))
	for _, store := range w.stores {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}
