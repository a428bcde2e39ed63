//go:build linux

package main_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/dbserver"
	"github.com/stintgo/stint/queue"
)

// databases starts a server of each kind, and returns their URLs by kind.
func databases(t *testing.T) map[string]string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stint-hosts-") //nolint:usetesting // the account of the server must be able to enter it
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := dbserver.NeedRedis(); err != nil {
		t.Fatal(err)
	}
	address, stopRedis, err := dbserver.Redis(t.TempDir(), dbserver.Always)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stopRedis)
	made, err := dbserver.NewPostgres(dir, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	postgres, err := made.Run(dir + "/server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(postgres.Stop)
	return map[string]string{"redis": "redis://" + address, "postgres": postgres.DSN}
}

// Servers with one store, in directories of their own: one leads. When it is killed, the
// next one takes over, and when that one ends, another one at once. What was submitted to
// one is known to the next.
func TestC11_ServersTakeOver(t *testing.T) {
	for kind, url := range databases(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			first := serve(t, "--store", url)
			id := first.submit("echo one")
			if r := first.stint("wait", id); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			second := standby(t, url)
			first.kill()
			wantServing(t, second.out.next())
			third := standby(t, url)
			if task := second.task(id); task.State != queue.Succeeded {
				t.Errorf("at the second server, the task is %s", task.State)
			}
			other := second.submit("echo two")
			if r := second.stint("wait", other); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			second.stop()
			wantServing(t, third.out.next())
			for _, id := range []string{id, other} {
				if task := third.task(id); task.State != queue.Succeeded {
					t.Errorf("at the third server, task %s is %s", id, task.State)
				}
			}
			third.stop()
		})
	}
}

// standby starts a server that waits until it leads.
func standby(t *testing.T, url string) *served {
	t.Helper()
	s := &served{t: t, dir: t.TempDir()}
	s.cmd = s.command("serve", "-j2", "--store", url)
	s.cmd.Stderr = t.Output()
	s.out = startLines(t, s.cmd)
	return s
}

func wantServing(t *testing.T, line string) {
	t.Helper()
	if line != "serving unix:stint-data/stint.sock" {
		t.Fatalf("the server says %q", line)
	}
}

// A store that cannot be used is named without its password, and with the remedy.
func TestC11_StoresThatServeRefuses(t *testing.T) {
	for url, says := range map[string]string{
		"mysql://root:secret@localhost/jobs":          "begins with postgres://",
		"postgres://root:secret@127.0.0.1:1/jobs":     "refused",
		"redis://:secret@127.0.0.1:1":                 "start it, or correct the address",
		"postgres://root:secret@host:port/jobs":       "URL",
		"postgres://root:secret@127.0.0.1:1/%zz?a=b%": "URL",
	} {
		s := &served{t: t, dir: t.TempDir()}
		r := s.stint("serve", "--store", url)
		if r.status != 125 || !strings.Contains(r.stderr, says) || strings.Contains(r.stderr, "secret") {
			t.Errorf("%s: %+v; want %q", url, r, says)
		}
	}
}
