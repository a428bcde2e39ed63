//go:build linux

package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// By its address a server answers only calls that bring the token, which it has made at
// its first start; by its socket it needs none.
func TestC6_ListenNeedsAToken(t *testing.T) {
	s := &served{t: t, dir: t.TempDir()}
	s.cmd = s.command("serve", "--listen", "127.0.0.1:0")
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := startLines(t, s.cmd)
	out.next()
	address := strings.TrimPrefix(out.next(), "serving ")
	said := lines{t: t, r: stderr}
	if line := said.next(); !strings.Contains(line, "that has the token in stint-data/token can run commands as ") {
		t.Errorf("at its start the server says %q", line)
	}
	go func() { // the server writes on
		for b := make([]byte, 1024); ; {
			if _, err := stderr.Read(b); err != nil {
				return
			}
		}
	}()
	path := filepath.Join(s.dir, "stint-data", "token")
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o600 || !regexp.MustCompile(`^[A-Z2-7]{26}\n$`).MatchString(read(t, path)) {
		t.Errorf("the token is %q, mode %v, %v", read(t, path), info, err)
	}
	s.stint("submit", "--server", address, "--", "true").want(t, "", "--token-file", 125)
	if r := s.stint("submit", "--server", address, "--token-file", path, "--", "true"); !taskID.MatchString(r.stdout) {
		t.Errorf("with its token: %+v", r)
	}
	s.stint("ls", "--token-file", path).want(t, "", "needs no token", 125)
	s.stint("ls", "--token-file", path, "--server", "127.0.0.1:7117").want(t, "", "give http://127.0.0.1:7117", 125)
	wrong := filepath.Join(s.dir, "wrong")
	write(t, wrong, strings.Repeat("A", 26))
	for _, args := range [][]string{{"ls"}, {"logs", "0123456"}, {"submit", "true"}} {
		args = append(args[:1:1], append([]string{"--server", address}, args[1:]...)...)
		byFlag := append(args[:1:1], append([]string{"--token-file", wrong}, args[1:]...)...)
		const notTheToken = " names, is not the token of the server at http://127.0.0.1"
		s.stint(byFlag...).want(t, "", "the token in "+wrong+", which --token-file"+notTheToken, 125)
		byVariable := s.command(args...)
		byVariable.Env = append(byVariable.Environ(), "STINT_TOKEN_FILE="+wrong)
		runCmd(t, byVariable, "").want(t, "", "which STINT_TOKEN_FILE"+notTheToken, 125)
	}
	if err := os.Chmod(wrong, 0o644); err != nil {
		t.Fatal(err)
	}
	s.stint("ls", "--server", address, "--token-file", wrong).want(t, "", "chmod 600", 125)
	if r := s.stint("ls"); r.status != 0 {
		t.Errorf("by its socket: %+v", r)
	}
	s.stop()
	s.keepsItsToken(path)
}

// keepsItsToken starts a server again and again, with tokens that it has, and with files
// that cannot be its token.
func (s *served) keepsItsToken(path string) {
	s.t.Helper()
	token := read(s.t, path)
	s.start("--listen", "127.0.0.1:0")
	s.stop()
	if again := read(s.t, path); again != token {
		s.t.Errorf("the token changes from %q to %q", token, again)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		s.t.Fatal(err)
	}
	s.stint("serve", "--listen", "127.0.0.1:0").want(s.t, "", "chmod 600 stint-data/token", 125)
	if err := os.Chmod(path, 0o600); err != nil {
		s.t.Fatal(err)
	}
	write(s.t, path, "short\n")
	s.stint("serve", "--listen", "127.0.0.1:0").want(s.t, "", "remove the file", 125)
}
