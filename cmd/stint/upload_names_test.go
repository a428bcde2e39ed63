//go:build linux

package main_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The lines of --from are names and no patterns, whatever characters they have.
func TestE4_UploadFromAList(t *testing.T) {
	t.Parallel()
	r := receive(t)
	names := []string{"a*", "[ab]", "c?", `back\slash`, " blank ", "-", "ä", "-v", "{x,y}"}
	want := make(map[string][]byte)
	for i, name := range names {
		want[name] = r.file(name, 100+i)
	}
	for _, other := range []string{"ab", "a", "cc", "backslash"} { // what patterns would match
		r.file(other, 50)
	}
	write(t, filepath.Join(r.dir, "list"), strings.Join(names, "\n")+"\n\n")
	if u := r.upload("--from", "list"); u.status != 0 || !strings.Contains(u.stderr, "9 sent") {
		t.Fatalf("%+v", u)
	}
	entries, err := os.ReadDir(filepath.Join(r.dir, "inbox"))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(names)+1 { // and the directory of unfinished ones
		t.Errorf("the server has %v", entries)
	}
	for name, content := range want {
		r.has(strings.TrimPrefix(strings.TrimSpace(name), `back\`), content)
	}
	if u := runCmd(t, r.uploads("--from", "-"), "a*\nc?\n"); u.status != 0 ||
		!strings.Contains(u.stderr, "0 sent (0 B), 2 skipped") {
		t.Errorf("a list from standard input: %+v", u)
	}
	if u := runCmd(t, r.uploads("./-"), "not this"); u.status != 0 || !strings.Contains(u.stderr, "1 skipped") {
		t.Errorf("a file named -: %+v", u)
	}
	for _, c := range []struct{ list, says string }{
		{"ab\nnone*\n", `"none*" names no file`},
		{"ab\n[\n", `"[" names no file`},
		{strings.Repeat("x", 1<<17), "--from -: bufio.Scanner: token too long"},
		{"\n\n", "say what to upload"},
	} {
		if u := runCmd(t, r.uploads("--from", "-"), c.list); u.status != 125 || !strings.Contains(u.stderr, c.says) {
			t.Errorf("the list %.20q: %+v", c.list, u)
		}
	}
	r.upload("--from", "nowhere").want(t, "", "open nowhere: no such file", 125)
}

// recorder is a server of uploads that answers nothing until it is released, and then that
// there are none.
type recorder struct {
	*httptest.Server
	asked   chan struct{} // receives for each request
	release func()

	mu   sync.Mutex
	said []string // the values of Authorization
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	released := make(chan struct{})
	r := &recorder{asked: make(chan struct{}, 1000), release: sync.OnceFunc(func() { close(released) })}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.said = append(r.said, req.Header.Get("Authorization"))
		r.mu.Unlock()
		r.asked <- struct{}{}
		select {
		case <-released:
		case <-req.Context().Done():
		}
		http.NotFound(w, req)
	}))
	t.Cleanup(func() {
		r.release()
		r.Close()
	})
	return r
}

// A token is for the server for which its call gave it: an upload that an earlier call has left
// for another server is continued with the token that the earlier call gave for it.
func TestE4_UploadTokenIsForOneServer(t *testing.T) {
	t.Parallel()
	r := &receiving{served: &served{t: t, dir: t.TempDir()}}
	r.file("a", 10)
	r.file("b", 20)
	first, second := newRecorder(t), newRecorder(t)
	call := func(server *recorder, name string) []string {
		token := filepath.Join(r.dir, name+"-token")
		if err := os.WriteFile(token, []byte(strings.Repeat(name, 20)), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"upload", name, "--to", server.URL + "/files/", "--token-file", name + "-token", "--dir", "uploads"}
	}
	cmd := r.command(call(first, "a")...)
	cmd.Stderr = t.Output()
	start(t, cmd)
	wait(t, first.asked)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	cmd = r.command(call(second, "b")...)
	start(t, cmd)
	wait(t, second.asked)
	wait(t, first.asked)
	first.release()
	second.release()
	if status := finish(t, cmd); status != 1 {
		t.Errorf("exit status %d", status)
	}
	for name, server := range map[string]*recorder{"a": first, "b": second} {
		server.mu.Lock()
		for _, said := range server.said {
			if said != "Bearer "+strings.Repeat(name, 20) {
				t.Errorf("the server of %s got the header %q", name, said)
			}
		}
		server.mu.Unlock()
	}
}

// wait waits for a signal.
func wait(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(2 * time.Minute):
		t.Fatal("waited in vain for a request")
	}
}

// A file is sent by its name, also if that looks like a pattern which others match. Links below
// directories are left out, with a line that says so.
func TestE4_UploadOfUnusualNames(t *testing.T) {
	t.Parallel()
	r := receive(t)
	right := r.file("take[1].txt", 100)
	r.file("take1.txt", 50)
	r.upload("take[1].txt").want(t, "", "1 sent (100 B)", 0)
	r.has("take[1].txt", right)

	below := r.file("dir/a", 10)
	if err := os.Symlink("../take1.txt", filepath.Join(r.dir, "dir", "link")); err != nil {
		t.Fatal(err)
	}
	u := r.upload("dir")
	u.want(t, "", "1 sent (10 B)", 0)
	const one = "left out 1 file below directories that is a symbolic link, socket or device: dir/link\n"
	if !strings.Contains(u.stderr, one) {
		t.Errorf("it says %q", u.stderr)
	}
	r.has("a", below)
	if err := os.Symlink("../take1.txt", filepath.Join(r.dir, "dir", "link2")); err != nil {
		t.Fatal(err)
	}
	u = r.upload("--again", "dir")
	const two = "left out 2 files below directories that are symbolic links, sockets or devices, first dir/link\n"
	if !strings.Contains(u.stderr, two) {
		t.Errorf("it says %q", u.stderr)
	}
}

// Names that cannot be sent fail alone: one that is not UTF-8, and a directory that cannot be read, here because its
// path is too long for the kernel.
func TestE4_UploadOfBadNames(t *testing.T) {
	t.Parallel()
	r := receive(t)
	good := r.file("dir/good", 10)
	r.file("dir/bad\xff", 20)
	at, err := os.OpenRoot(filepath.Join(r.dir, "dir"))
	for range 17 {
		if err == nil {
			err = at.Mkdir(strings.Repeat("x", 250), 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		above := at
		at, err = above.OpenRoot(strings.Repeat("x", 250))
		above.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	at.Close()
	u := r.upload("dir")
	u.want(t, "", "1 sent (10 B), 0 skipped, 2 failed", 2)
	if !strings.Contains(u.stderr, "that cannot be sent: 2, the first of them: open dir/xxx") ||
		!strings.Contains(u.stderr, "file name too long") {
		t.Errorf("it says %q", u.stderr)
	}
	r.has("good", good)
	r.upload("dir/bad\xff").want(t, "", "cannot be sent: 1, the first of them: upload of \"dir/bad\\xff\": "+
		"its name is not UTF-8, and the store would keep another one: rename the file", 1)
}

// A token file that is written a moment later, as by a server that starts, is waited for.
func TestE4_UploadWaitsForTheToken(t *testing.T) {
	t.Parallel()
	r := receive(t)
	content := r.file("a", 1000)
	token, err := os.ReadFile(filepath.Join(r.dir, "stint-data/uploads-token"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := r.command("upload", "--to", r.to[1], "--token-file", "late", "--dir", "uploads", "a")
	cmd.Env = append(cmd.Env, "STINT_PATIENCE=1m")
	start(t, cmd)
	select {
	case <-time.After(200 * time.Millisecond):
	case <-t.Context().Done():
	}
	write(t, filepath.Join(r.dir, "late.new"), string(token))
	if err := os.Rename(filepath.Join(r.dir, "late.new"), filepath.Join(r.dir, "late")); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
	r.has("a", content)
}

// An upload whose standard output has no reader ends as a program before head in a pipe does.
func TestE4_UploadWithoutReader(t *testing.T) {
	t.Parallel()
	r := receive(t)
	r.file("a", 100)
	cmd := r.uploads("--progress", "json", "a")
	pipe, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe.Close()
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = w, &stderr
	start(t, cmd)
	w.Close()
	if status := finish(t, cmd); status != 128+int(syscall.SIGPIPE) || strings.Contains(stderr.String(), "broken pipe") {
		t.Errorf("exit status %d, says %q", status, stderr.String())
	}
}
