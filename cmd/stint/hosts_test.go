//go:build linux

package main_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/dbserver"
	"github.com/stintgo/stint/queue"
)

// redis starts a Redis server, and returns its URL.
func redis(t *testing.T) string {
	t.Helper()
	if err := dbserver.NeedRedis(); err != nil {
		t.Fatal(err)
	}
	address, stop, err := dbserver.Redis(t.TempDir(), dbserver.Always)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return "redis://" + address
}

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
	redisURL := redis(t)
	made, err := dbserver.NewPostgres(dir, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	postgres, err := made.Run(dir + "/server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(postgres.Stop)
	return map[string]string{"redis": redisURL, "postgres": postgres.DSN}
}

// The URL in STINT_STORE, which may have a password, is not in the environment of commands: one that
// lists its variables would write it into its log.
func TestC11_CommandsDoNotGetTheStore(t *testing.T) {
	t.Parallel()
	url := redis(t)
	s := &served{t: t, dir: t.TempDir()}
	s.cmd = s.command("serve")
	s.cmd.Env = append(s.cmd.Env, "STINT_STORE="+url)
	s.out = startLines(t, s.cmd)
	if line := s.out.next(); line != "serving unix:stint-data/stint.sock" {
		t.Fatalf("the server says %q", line)
	}
	id := s.submit(`echo "${STINT_STORE-unset} $USER"`)
	s.stint("wait", id).want(t, "", "", 0)
	s.stint("logs", id).want(t, "unset tester\n", "", 0)
	s.stop()
}

// Servers with one store, in directories of their own, share its tasks: each works, and each
// knows what was submitted to another. When the leader is killed, another one leads; when
// one ends in order, another one leads at once.
func TestC11_ServersTakeOver(t *testing.T) {
	for kind, url := range databases(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			first := serve(t, "--store", url, "--queue", "first")
			second := serve(t, "--store", url, "--queue", "second")
			third := serve(t, "--store", url, "--queue", "second", "--queue", "third")
			id := second.submit("--queue", "first", "echo one")
			if r := third.stint("wait", id); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			if r := first.stint("logs", id); r.stdout != "one\n" {
				t.Errorf("the log at the server that has run the task: %+v", r)
			}
			wantLeader(t, second, first)
			first.kill()
			other := second.submit("--queue", "second", "echo two")
			if r := third.stint("wait", other); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			second.stop()
			last := third.submit("--queue", "third", "echo three")
			if r := third.stint("wait", last); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			wantLeader(t, third, third)
			for _, id := range []string{id, other, last} {
				if task := third.task(id); task.State != queue.Succeeded {
					t.Errorf("at the third server, task %s is %s", id, task.State)
				}
			}
			third.stop()
		})
	}
}

// wantLeader checks what stint nodes says at a server.
func wantLeader(t *testing.T, at, want *served) {
	t.Helper()
	r := at.stint("nodes", "--json")
	line, _, _ := strings.Cut(r.stdout, "\n")
	pid, leads := fmt.Sprintf(":%d\"", want.cmd.Process.Pid), `"leads":true`
	if r.status != 0 || !strings.Contains(line, pid) || !strings.Contains(line, leads) {
		t.Errorf("the first node is not process %d: %+v", want.cmd.Process.Pid, r)
	}
	if r := at.stint("nodes"); r.status != 0 || !strings.HasPrefix(r.stdout, "NODE") {
		t.Errorf("%+v", r)
	}
}

// A limit holds over all servers of a store.
func TestC11_LimitsOverServers(t *testing.T) {
	for kind, url := range databases(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// Neither can reach the limit alone, so both work.
			first, second := serve(t, "-j2", "--store", url), serve(t, "-j2", "--store", url)
			if r := second.stint("limit", "set", "--queue", "default", "--running", "3"); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			// Each leaves the number of those that run at its start.
			const command = `f=$(mktemp %[1]s/run.XXXXXX); ls %[1]s | grep -c run. >> %[1]s/counts; sleep 0.2; rm $f`
			if r := first.stint("pause", "--queue", "default"); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			var ids []string
			for i := range 16 {
				at := []*served{first, second}[i%2]
				ids = append(ids, at.submit("sh", "-c", fmt.Sprintf(command, dir)))
			}
			if r := second.stint("resume", "--queue", "default"); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			if r := second.stint(append([]string{"wait"}, ids...)...); r.status != 0 {
				t.Fatalf("%+v", r)
			}
			counts := strings.Fields(read(t, dir+"/counts"))
			if most := slices.Max(counts); len(counts) != len(ids) || most != "3" {
				t.Errorf("%d tasks have run, up to %s at once; want %d, and 3", len(counts), most, len(ids))
			}
			workers := make(map[string]bool)
			for _, id := range ids {
				for _, step := range first.task(id).Steps {
					if step.On == queue.OnClaim {
						workers[step.By] = true
					}
				}
			}
			if len(workers) != 2 {
				t.Errorf("the workers are %v, want two", workers)
			}
			second.stop()
			first.stop()
		})
	}
}

// A store that cannot be used is named without its password, and with the remedy.
func TestC11_StoresThatServeRefuses(t *testing.T) {
	for url, says := range map[string]string{
		"mysql://root:secret@localhost/jobs":          "give a URL with postgres://",
		"postgres://root:secret@127.0.0.1:1/jobs":     "refused",
		"redis://:secret@127.0.0.1:1":                 "start it, or correct the address",
		"postgres://root:secret@host:port/jobs":       "URL",
		"postgres://root:secret@127.0.0.1:1/%zz?a=b%": "URL",
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel() // two of them wait for a server
			s := &served{t: t, dir: t.TempDir()}
			r := s.stint("serve", "--store", url)
			if r.status != 125 || !strings.Contains(r.stderr, says) || strings.Contains(r.stderr, "secret") {
				t.Errorf("%s: %+v; want %q", url, r, says)
			}
		})
	}
}
