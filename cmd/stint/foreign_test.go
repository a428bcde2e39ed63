//go:build linux

package main_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is the ID of a user other than that of the tests.
const nobody = 65534

// The variables of a process that the tests start as user nobody.
const (
	asNobody = "STINT_TEST_AS_NOBODY"
	listenAt = "STINT_TEST_LISTEN_AT" // the path of a socket: see countBytes
)

// becomeNobody changes the user of a process that the tests have started for that.
func becomeNobody() {
	if os.Getenv(asNobody) == "" {
		return
	}
	if err := errors.Join(syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
		panic(err)
	}
	if path := os.Getenv(listenAt); path != "" {
		countBytes(path)
		os.Exit(0)
	}
}

// countBytes listens at a path, and prints how many bytes the first connection brings.
func countBytes(path string) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "unix", path)
	if err != nil {
		panic(err)
	}
	fmt.Println("listening")
	c, err := l.Accept()
	if err != nil {
		panic(err)
	}
	n, err := io.Copy(io.Discard, c)
	fmt.Println(n, "bytes", err)
}

// commonDir returns a directory that no other user may enter and write to. If the tests
// cannot start processes as user nobody, it logs that and returns "".
func commonDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		t.Log("NOT SHOWN: this user cannot start processes of another one; internal/peer tests the decision")
		return ""
	}
	if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A listener of another user, at the place of the server's socket, gets no byte of what
// is submitted.
func TestC6_NothingIsSentToOtherUsers(t *testing.T) {
	dir := commonDir(t)
	if dir == "" {
		return
	}
	s := &served{t: t, dir: dir}
	data := filepath.Join(dir, "stint-data")
	if err := errors.Join(os.Mkdir(data, 0o700), os.Chown(data, nobody, -1)); err != nil {
		t.Fatal(err)
	}
	listener := command(t)
	listener.Env = append(listener.Env, asNobody+"=1", listenAt+"="+filepath.Join(data, "stint.sock"))
	out := startLines(t, listener)
	out.next()
	r := s.stint("submit", "-e", "DB_PASSWORD=secret", "--", "true")
	r.want(t, "", "runs as user 65534, and this one runs as user 0; run the command as user 65534", 125)
	if got := out.next(); got != "0 bytes <nil>" {
		t.Errorf("the other user's listener gets %s", got)
	}
	finish(t, listener)
}

// A server does nothing for processes of other users, also if its socket lets them
// connect.
func TestC6_OtherUsersAreRefused(t *testing.T) {
	dir := commonDir(t)
	if dir == "" {
		return
	}
	s := &served{t: t, dir: dir}
	s.start()
	data := filepath.Join(dir, "stint-data")
	if err := errors.Join(os.Chmod(data, 0o755), os.Chmod(filepath.Join(data, "stint.sock"), 0o666)); err != nil {
		t.Fatal(err)
	}
	cmd := s.command("submit", "--", "true")
	cmd.Env = append(cmd.Env, asNobody+"=1")
	const refused = "this server answers processes of its own user, of root and of the configured users"
	runCmd(t, cmd, "").want(t, "", refused, 125)
	if r := s.stint("ls", "--json"); r.stdout != "" || r.status != 0 {
		t.Errorf("there are tasks: %+v", r)
	}
	s.stop()
	s.cmd = s.command("serve", "--dir", filepath.Join(dir, "theirs"))
	s.cmd.Env = append(s.cmd.Env, asNobody+"=1")
	startLines(t, s.cmd).next()
	cmd = s.command("submit", "--server", "theirs", "--", "true")
	cmd.Env = append(cmd.Env, asNobody+"=1")
	if r := runCmd(t, cmd, ""); r.status != 0 {
		t.Errorf("their own server: %+v", r)
	}
	s.stop()
}

// A directory that another user owns or may write to is not served, nor one in which
// such a user has left something: its tasks would run as the server's user.
func TestC6_ServeRefusesDirectoriesOfOthers(t *testing.T) {
	s := serve(t)
	s.submit("--delay", "1h", "--", "true")
	s.stop()
	data := filepath.Join(s.dir, "stint-data")
	refused := func(says ...string) {
		t.Helper()
		r := s.hasty("serve")
		if r.status != 125 || r.stdout != "" {
			t.Errorf("it is served: %+v", r)
		}
		for _, want := range says {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("it says %q, want %q in it", r.stderr, want)
			}
		}
	}
	for _, part := range []string{"", "/store", "/logs"} {
		path := data + part
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
		refused("stint-data"+part+" belongs to user ", "mode 0777", "chmod go-w")
		if err := errors.Join(os.Chmod(path, 0o700), os.Chown(path, nobody, -1)); err != nil {
			t.Logf("NOT SHOWN: this user cannot give a directory away: %v", err)
			continue
		}
		refused("stint-data"+part+" belongs to user 65534", "mode 0700", "runs as user")
		if err := os.Chown(path, os.Geteuid(), -1); err != nil {
			t.Fatal(err)
		}
	}
	planted := filepath.Join(data, "store", "000001.log")
	write(t, planted, "tasks of another user")
	if err := os.Chown(planted, nobody, -1); err != nil {
		t.Logf("NOT SHOWN: this user cannot give a file away: %v", err)
	} else {
		refused("stint-data/store/000001.log belongs to user 65534", "move it elsewhere")
	}
	if err := os.Remove(planted); err != nil {
		t.Fatal(err)
	}
	s.start()
	if r := s.stint("stats"); r.status != 0 {
		t.Errorf("as it was before, it is not served: %+v", r)
	}
	s.stop()
}

// An address that is in use, as by a server that was killed a moment ago, is tried as
// long as STINT_PATIENCE says.
func TestC6_ServeWaitsForItsAddress(t *testing.T) {
	busy, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, dir: t.TempDir()}
	r := s.hasty("serve", "--listen", busy.Addr().String())
	r.want(t, "", "choose another address with --listen", 125)
	s.cmd = s.command("serve", "--listen", busy.Addr().String())
	s.cmd.Stderr = t.Output()
	out := startLines(t, s.cmd)
	socket := filepath.Join(s.dir, "stint-data", "stint.sock")
	for listens := false; !listens; { // it opens the address after the socket
		conn, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
		if listens = err == nil; listens {
			conn.Close()
		}
	}
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	out.next()
	if line := out.next(); line != "serving http://"+busy.Addr().String() {
		t.Errorf("the server says %q", line)
	}
	s.stop()
}

// A command has no descriptor of the server's listeners, which would keep the address
// in use after the server was killed.
func TestC6_CommandsInheritNoListener(t *testing.T) {
	s := serve(t, "--listen", "127.0.0.1:0")
	id := s.submit("--", "ls", "-l", "/proc/self/fd")
	s.stint("wait", id).want(t, "", "", 0)
	if open := s.stint("logs", id).stdout; strings.Contains(open, "socket:") || !strings.Contains(open, "pipe:") {
		t.Errorf("it has open %s", open)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	finish(t, s.cmd)
}
