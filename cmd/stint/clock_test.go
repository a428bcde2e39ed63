//go:build linux

package main_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// The claim of an attempt that was lost with the server keeps its time, and the loss
// has that of the next start.
func TestC4_ShowDatesALostAttempt(t *testing.T) {
	s := serve(t)
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	id := s.submit("echo $$ > " + pipe + "; read line < " + gate)
	pid := ev.pid()
	begun := time.Now()
	s.kill()
	killed := time.Now()
	wantGone(t, []int{pid}) // or it reads the line
	s.start()
	ev.next() // it has begun again
	task := s.task(id)
	if got := strings.Join(on(&task), " "); got != "submit claim lose claim" {
		t.Fatalf("its steps are %s", got)
	}
	if at := task.Steps[1].At; at.After(begun) {
		t.Errorf("it was claimed %v after it began", at.Sub(begun))
	}
	if at := task.Steps[2].At; at.Before(killed) {
		t.Errorf("the loss is dated %v before the server was killed", killed.Sub(at))
	}
	write(t, gate, "\n")
	s.stint("wait", id).want(t, "", "", 0)
	s.stop()
}

// A directory that was used with a clock an hour or a year ahead is served as if that
// clock had been right.
func TestC8_ServeAfterAClockAhead(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"an hour": time.Hour, "a year": 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := &served{t: t, dir: t.TempDir()}
			delayed := delayedByAClockAhead(t, filepath.Join(s.dir, "stint-data", "store"), ahead)
			s.start()
			for what, id := range map[string]string{
				"before": delayed, "by this server": s.submit("--delay", "10m", "true"),
			} {
				task := s.task(id)
				wait := time.Until(task.RunAt)
				if task.State != queue.Scheduled || wait < 5*time.Minute || wait > 10*time.Minute {
					t.Errorf("a task that was delayed by 10m %s is %s, and due in %s", what, task.State, wait)
				}
			}
			failing := s.submit("--retries", "5", "false")
			for len(s.task(failing).Steps) < 3 {
			}
			task := s.task(failing)
			if failed := task.Steps[2]; failed.To != queue.Scheduled || !task.RunAt.After(failed.At) {
				t.Errorf("a command failed at %v, is %s then, and tried again at %v", failed.At, failed.To, task.RunAt)
			}
			s.stop()
		})
	}
}

// delayedByAClockAhead submits a task to a new store, with a delay of ten minutes by a
// clock that is ahead, and returns its ID.
func delayedByAClockAhead(t *testing.T, dir string, ahead time.Duration) string {
	t.Helper()
	store, err := filestore.Open(dir, filestore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var ids queue.IDs
	now := time.Now().Add(ahead)
	spec := queue.Spec{Kind: "other", Options: queue.Options{RunAt: now.Add(10 * time.Minute)}}
	task := queue.NewTask{ID: ids.New(now), Spec: spec}
	if _, err := store.Submit(t.Context(), now, []queue.NewTask{task}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return task.ID.String()
}
