//go:build linux

package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// receiving is a server that receives uploads, and the arguments that name it.
type receiving struct {
	*served
	to []string
}

func receive(t *testing.T, flags ...string) *receiving {
	t.Helper()
	r := &receiving{served: &served{t: t, dir: t.TempDir()}}
	r.begin("127.0.0.1:0", flags...)
	return r
}

func (r *receiving) begin(address string, flags ...string) {
	r.t.Helper()
	r.start(append([]string{"--uploads", "inbox", "--uploads-listen", address}, flags...)...)
	url, ok := strings.CutPrefix(r.out.next(), "serving ")
	if !ok {
		r.t.Fatalf("the server says %q", url)
	}
	r.to = []string{"--to", url, "--token-file", "stint-data/uploads-token", "--dir", "uploads"}
}

// file makes a file with random content in the directory of the server.
func (r *receiving) file(name string, size int) []byte {
	r.t.Helper()
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size), byte(size >> 8)}).Read(content)
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return content
}

// uploads is a stint upload that has not been started.
func (r *receiving) uploads(args ...string) *exec.Cmd {
	r.t.Helper()
	return r.command(append(append([]string{"upload"}, r.to...), args...)...)
}

func (r *receiving) upload(args ...string) result {
	r.t.Helper()
	return runCmd(r.t, r.uploads(args...), "")
}

// has checks a received file.
func (r *receiving) has(name string, want []byte) {
	r.t.Helper()
	got, err := os.ReadFile(filepath.Join(r.dir, "inbox", name))
	if err != nil || !bytes.Equal(got, want) {
		r.t.Errorf("%s: %d bytes, want %d, %v", name, len(got), len(want), err)
	}
}

// transfers returns the uploads that stint transfers lists.
func (r *receiving) transfers() (all []transfer.Transfer) {
	r.t.Helper()
	listed := r.stint("transfers", "--all", "--json", "--server", "uploads")
	for d := json.NewDecoder(strings.NewReader(listed.stdout)); d.More(); {
		var t transfer.Transfer
		if err := d.Decode(&t); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, t)
	}
	return all
}

// await waits until the uploads fulfil a condition.
func (r *receiving) await(what string, ok func([]transfer.Transfer) bool) []transfer.Transfer {
	r.t.Helper()
	var all []transfer.Transfer
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if all = r.transfers(); ok(all) {
			return all
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-r.t.Context().Done():
			r.t.Fatal("the test ends while it waits for " + what)
		}
	}
	r.t.Fatalf("waited in vain for %s: %+v", what, all)
	return nil
}

// commands returns the IDs of the commands that were submitted.
func (r *receiving) commands() (ids []string) {
	r.t.Helper()
	listed := r.stint("ls", "--kind", "command", "--json")
	for d := json.NewDecoder(strings.NewReader(listed.stdout)); d.More(); {
		var task struct{ ID string }
		if err := d.Decode(&task); err != nil {
			r.t.Fatal(err)
		}
		ids = append(ids, task.ID)
	}
	return ids
}

// Files, directories and standard input arrive. What is there is skipped, and what has
// changed is sent again. A command runs for each file.
func TestE4_UploadsArrive(t *testing.T) {
	t.Parallel()
	r := receive(t, "--then", `[ -d stint-data ] && wc -c < "$1"`) // in the directory of the server
	big, small := r.file("big.bin", 20<<20), r.file("photos/a b.jpg", 1000)
	u := r.upload("big.bin", "photos", "--lanes", "3", "--verify", "--chunk", "1M")
	if u.status != 0 || !strings.Contains(u.stderr, "2 sent (20.0 MiB), 0 skipped, 0 failed") {
		t.Fatalf("%+v", u)
	}
	r.has("big.bin", big)
	r.has("a b.jpg", small)
	r.upload("big.bin", "photos").want(t, "", "0 sent (0 B), 2 skipped, 0 failed", 0)
	small = r.file("photos/a b.jpg", 2000)
	if u := r.upload("photos", "--name", "c.jpg"); u.status != 0 {
		t.Fatalf("%+v", u)
	}
	r.has("c.jpg", small)
	in := runCmd(t, r.uploads("-", "--name", "in.txt"), "from a pipe\n")
	if in.status != 0 {
		t.Fatalf("%+v", in)
	}
	r.has("in.txt", []byte("from a pipe\n"))
	if left, err := fs.Glob(os.DirFS(filepath.Join(r.dir, "inbox", ".uploads")), "*.data"); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	ids := r.commands()
	if len(ids) != 4 {
		t.Fatalf("%d commands were submitted: %v", len(ids), ids)
	}
	sizes := make(map[string]bool)
	for _, id := range ids {
		r.stint("wait", id).want(t, "", "", 0)
		sizes[strings.TrimSpace(r.stint("logs", id).stdout)] = true
	}
	for _, size := range []int{len(big), 1000, 2000, 12} {
		if !sizes[fmt.Sprint(size)] {
			t.Errorf("no command has seen %d bytes: %v", size, sizes)
		}
	}
}

// A server that takes tasks from other queues than the default one runs its commands, too.
func TestE4_UploadsArriveAtAServerOfOtherQueues(t *testing.T) {
	t.Parallel()
	r := receive(t, "--queue", "images", "--queue", "other", "--then", `wc -c < "$1"`)
	r.file("a", 1000)
	r.upload("a").want(t, "", "1 sent (1000 B), 0 skipped, 0 failed", 0)
	ids := r.commands()
	if len(ids) != 1 {
		t.Fatalf("commands were submitted: %v", ids)
	}
	r.stint("wait", ids[0]).want(t, "", "", 0)
	if found := r.stint("ls", "--queue", "images", "--json"); !strings.Contains(found.stdout, ids[0]) {
		t.Errorf("the command is not on the first queue of the server: %+v", found)
	}
}

// Without --chunk, a file has the chunks of package transfer.
func TestE4_UploadInUsualChunks(t *testing.T) {
	t.Parallel()
	r := receive(t, "--uploads-rate", "1MiB/s")
	r.file("big.bin", transfer.DefaultChunkSize+1)
	u := r.uploads("big.bin")
	start(t, u)
	all := r.await("chunks", func(all []transfer.Transfer) bool { return len(all) == 1 && len(all[0].Chunks) > 0 })
	if n := len(all[0].Chunks); n != 2 {
		t.Errorf("a file of one chunk and one byte has %d chunks", n)
	}
	_ = u.Process.Kill()
	_ = u.Wait()
}

// Both sides are killed in the middle, and the same command completes the file.
func TestE4_UploadContinuesAfterKills(t *testing.T) {
	t.Parallel()
	r := receive(t)
	content := r.file("big.bin", 32<<20)
	// At this rate the file takes minutes: no step misses its state on a busy machine.
	args := []string{"big.bin", "--chunk", "64K"}
	slow := append(args, "--rate", "128KiB/s")
	done := func(least int64) func([]transfer.Transfer) bool {
		return func(all []transfer.Transfer) bool { return len(all) == 1 && all[0].Done >= least }
	}
	first := r.uploads(slow...)
	start(t, first)
	before := r.await("four chunks", done(256<<10))[0].Done
	_ = first.Process.Kill()
	_ = first.Wait()
	second := r.uploads(slow...)
	start(t, second)
	before = r.await("two more, by the second command", done(before+128<<10))[0].Done
	r.kill()
	r.begin(strings.TrimSuffix(strings.TrimPrefix(r.to[1], "http://"), "/files/"))
	r.await("two more, to the second server", done(before+128<<10))
	_ = second.Process.Kill()
	_ = second.Wait()
	if u := r.upload(args...); u.status != 0 || !strings.Contains(u.stderr, "1 sent (32.0 MiB), 0 skipped") {
		t.Fatalf("%+v", u)
	}
	r.has("big.bin", content)
	r.upload(args...).want(t, "", "0 sent (0 B), 1 skipped, 0 failed", 0)
}

// A second call with the same directory hands its upload to the first one, and goes on by itself
// when the first one is killed.
func TestE4_UploadIsHandedOver(t *testing.T) {
	t.Parallel()
	r := receive(t)
	a, b := r.file("a", 1<<20), r.file("b", 1<<20)
	slow := []string{"--chunk", "64K", "--rate", "64KiB/s"}
	first := r.uploads(append(slow, "a")...)
	start(t, first)
	r.await("the first one", func(all []transfer.Transfer) bool { return len(all) == 1 && all[0].State == queue.Running })
	second := r.uploads("b")
	start(t, second)
	r.await("both at the first call", func(all []transfer.Transfer) bool {
		return len(all) == 2 && all[0].State == queue.Running && all[1].State == queue.Running
	})
	_ = first.Process.Kill()
	_ = first.Wait()
	if status := finish(t, second); status != 0 {
		t.Errorf("exit status %d", status)
	}
	r.has("b", b)
	r.upload(append(slow[:2:2], "a")...)
	r.has("a", a)
}

// Uploads are paused, resumed and cancelled from another terminal, one and all, queued and
// running.
func TestE2_UploadsAreCommanded(t *testing.T) {
	t.Parallel()
	r := receive(t)
	var contents [][]byte
	var names []string
	for i := range 4 {
		names = append(names, fmt.Sprintf("%d.bin", i))
		contents = append(contents, r.file(names[i], 1<<20+i))
	}
	cmd := r.uploads(append(names, "--chunk", "64K", "--rate", "64KiB/s", "-j1")...)
	var said strings.Builder
	cmd.Stderr = &said
	start(t, cmd)
	all := r.await("one that runs", func(all []transfer.Transfer) bool {
		return len(all) == 4 && all[0].State == queue.Running
	})
	order := func(args ...string) {
		t.Helper()
		if o := r.stint(append(args, "--server", "uploads")...); o.status != 0 {
			t.Errorf("%v: %+v", args, o)
		}
	}
	state := func(of int, want queue.State) {
		t.Helper()
		r.await(want.String(), func(all []transfer.Transfer) bool { return all[of].State == want })
	}
	order("pause", all[0].ID.String())
	state(0, queue.Paused)
	state(1, queue.Running) // the slot is free
	order("cancel", all[1].ID.String())
	state(1, queue.Cancelled)
	order("pause", "--kind", "stint.upload")
	r.await("none that runs", func(all []transfer.Transfer) bool {
		return all[0].State == queue.Paused && all[2].State == queue.Paused && all[3].State == queue.Paused
	})
	order("resume", "--kind", "stint.upload")
	state(0, queue.Running)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, cmd); status != 130 {
		t.Errorf("exit status %d after Ctrl-C", status)
	}
	if !strings.Contains(said.String(), "0 skipped, 0 failed, 1 cancelled\nstint: 3 unfinished: the same command") {
		t.Errorf("it says %q", said.String())
	}
	cmd = r.uploads(append(names, "--chunk", "64K", "--rate", "64KiB/s", "-j1")...)
	said.Reset()
	cmd.Stderr = &said
	start(t, cmd)
	r.await("one that runs", func(all []transfer.Transfer) bool { return len(all) == 4 && all[0].State == queue.Running })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, cmd); status != 143 {
		t.Errorf("exit status %d after SIGTERM: %s", status, said.String())
	}
	r.upload(names...).want(t, "", "4 sent (4.0 MiB), 0 skipped, 0 failed", 0)
	for i, name := range names {
		r.has(name, contents[i])
	}
}

// Wrong arguments, a wrong token and a missing server are explained.
func TestE4_UploadRefuses(t *testing.T) {
	t.Parallel()
	r := receive(t)
	r.file("a", 10)
	wrong := filepath.Join(r.dir, "wrong")
	write(t, wrong, strings.Repeat("A", 26))
	for _, c := range []struct {
		args   []string
		says   string
		status int
	}{
		{[]string{"a"}, "say where to", 125},
		{[]string{"--to", r.to[1]}, "say what to upload", 125},
		{[]string{"--to", r.to[1], "none"}, `"none" names no file`, 125},
		{[]string{"--to", r.to[1], "-"}, "standard input has no name", 125},
		{[]string{"--to", r.to[1], "a", "--chunk", "x"}, "--chunk", 125},
		{[]string{"--to", r.to[1], "a", "--lanes", "99"}, "--lanes 99: give a number from 1 to 16", 125},
		{[]string{"--to", r.to[1], "a", "--retries", "-1"}, "--retries -1: give a number from 0 to", 125},
		{
			[]string{"--to", r.to[1], "a", "--retries", "9223372036854775807"},
			"--retries 9223372036854775807: give a number from 0 to 1000000000", 125,
		},
		{[]string{"--to", r.to[1], "a", "--tier", "idler"}, `--tier: unknown priority "idler": use lowest`, 125},
		{[]string{"--to", r.to[1], "--from", "nowhere"}, "--from: open nowhere: no such file or directory", 125},
		{[]string{"--to", r.to[1], "a", "--rate", "0"}, "--rate 0 lets no byte pass: give more, as in 5MiB/s, or", 125},
		{[]string{"--to", r.to[1], "a", "--rate", "1TiB/s"}, "a token is a byte: write it as in 5MiB/s, up to 16GiB/s", 125},
		{[]string{"--to", r.to[1], "a"}, "; give credentials: --token-file", 1},
		{[]string{"--to", r.to[1], "a", "--token-file", "wrong"}, "; the server refuses the token in " + wrong, 1},
		{[]string{"--to", "http://127.0.0.1:1/", "a", "--retries", "0"}, "connection refused", 1},
	} {
		cmd := r.command(append([]string{"upload", "--dir", "other"}, c.args...)...)
		if u := runCmd(t, cmd, ""); u.status != c.status || !strings.Contains(u.stderr, c.says) {
			t.Errorf("%v: %+v", c.args, u)
		}
	}
}

// A call without the token fails, and the same one with it succeeds: the known upload is not tried
// again without. A third one finds the file there.
func TestE4_UploadWithOtherCredentials(t *testing.T) {
	t.Parallel()
	r := receive(t)
	content := r.file("a", 1000)
	to := []string{"upload", "--dir", "other", "--to", r.to[1], "a"}
	run := func(args ...string) result { return runCmd(t, r.command(append(slices.Clone(to), args...)...), "") }
	for range 2 {
		run().want(t, "", "0 sent (0 B), 0 skipped, 1 failed", 1)
	}
	token := r.to[2:4]
	run(token...).want(t, "", "1 sent (1000 B), 0 skipped, 0 failed", 0)
	r.has("a", content)
	run(token...).want(t, "", "0 sent (0 B), 1 skipped, 0 failed", 0)
}

// An upload whose directory another process has locked, without a socket, says what it waits for, and continues when
// that process has ended.
func TestE4_UploadWaitsForASilentProcess(t *testing.T) {
	t.Parallel()
	r := receive(t)
	want := r.file("a", 1000)
	other := r.command("serve", "--dir", "uploads", "--queue", "none")
	startLines(t, other).next()
	if err := os.Remove(filepath.Join(r.dir, "uploads", "stint.sock")); err != nil {
		t.Fatal(err)
	}
	cmd := r.uploads("a")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil || !strings.Contains(line, "uploads open and does not answer") ||
		!strings.Contains(line, fmt.Sprint(other.Process.Pid)) {
		t.Errorf("it says %q, %v", line, err)
	}
	_ = other.Process.Kill()
	finish(t, other)
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
	r.has("a", want)
	r.stop()
}

// With --again, files that have been sent are sent once more, each time, and one that such a call has left unfinished
// continues.
func TestE4_UploadAgain(t *testing.T) {
	t.Parallel()
	r := receive(t)
	content := r.file("a", 1<<20)
	r.upload("a").want(t, "", "1 sent", 0)
	r.upload("a", "--again").want(t, "", "1 sent (1.0 MiB), 0 skipped", 0)
	cmd := r.uploads("a", "--again", "--chunk", "16K", "--rate", "32KiB/s")
	start(t, cmd)
	r.await("a third one", func(all []transfer.Transfer) bool { return len(all) == 3 && all[2].Done > 64<<10 })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	r.upload("a", "--again").want(t, "", "1 sent", 0)
	r.upload("a").want(t, "", "0 sent (0 B), 1 skipped", 0)
	for _, name := range []string{"a", "a-2", "a-3"} {
		r.has(name, content)
	}
	if received, err := os.ReadDir(filepath.Join(r.dir, "inbox")); err != nil || len(received) != 3+1 {
		t.Errorf("the server has %v, %v", received, err)
	}
}

// The address of uploads has the page for browsers, for which no token is needed.
func TestE1_PageForBrowsers(t *testing.T) {
	r := receive(t)
	page := strings.TrimSuffix(r.to[1], "files/")
	for path, want := range map[string]string{
		"": `<body data-endpoint="/files/" data-token>`, "scheduler.js": "export class Scheduler",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s%s does not contain %s: %v\n%s", page, path, want, err, body)
		}
	}
}

// Standard input that was paused before anything was read of it is sent when it is resumed.
func TestE2_QueuedInputIsPaused(t *testing.T) {
	t.Parallel()
	r := receive(t)
	r.file("slow", 300<<10)
	input := r.file("in", 1000)
	slow := []string{"--chunk", "64K", "--rate", "64KiB/s", "-j1"}
	first := r.uploads(append(slow, "slow")...)
	start(t, first)
	r.await("one that runs", func(all []transfer.Transfer) bool { return len(all) == 1 && all[0].State == queue.Running })
	_ = first.Process.Kill()
	_ = first.Wait()
	cmd := r.uploads(append(slow, "-", "--name", "input")...)
	cmd.Stdin = bytes.NewReader(input)
	said, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = w
	start(t, cmd)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	id := r.await("the input to wait", func(all []transfer.Transfer) bool {
		return len(all) == 2 && all[0].State == queue.Running && all[1].State == queue.Waiting
	})[1].ID.String()
	r.stint("pause", id, "--server", "uploads").want(t, "1 task paused\n", "", 0)
	lines := bufio.NewReader(said)
	if line, err := lines.ReadString('\n'); !strings.Contains(line, "all unfinished uploads are paused") {
		t.Fatalf("it says %q, %v", line, err)
	}
	r.stint("resume", id, "--server", "uploads").want(t, "1 task resumed\n", "", 0)
	if rest, err := io.ReadAll(lines); !strings.Contains(string(rest), "1 sent (1000 B)") {
		t.Errorf("it says %q, %v", rest, err)
	}
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
	r.has("input", input)
}

// uploadsInput starts an upload of standard input, of which it has sent a part.
func (r *receiving) uploadsInput() (cmd *exec.Cmd, in io.WriteCloser, stderr *bytes.Buffer) {
	r.t.Helper()
	cmd, stderr = r.uploads("-", "--name", "input"), new(bytes.Buffer)
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	start(r.t, cmd)
	if _, err := in.Write(make([]byte, 100_000)); err != nil { // more than a pipe holds: it is being read
		r.t.Fatal(err)
	}
	return cmd, in, stderr
}

// A signal ends an upload of a standard input that does not end.
func TestE2_SignalEndsUploadOfSilentInput(t *testing.T) {
	t.Parallel()
	r := receive(t)
	cmd, _, stderr := r.uploadsInput()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, cmd); status != 143 || !strings.Contains(stderr.String(), "stint: 1 unfinished: ") {
		t.Errorf("it ends with %d, and says %q", status, stderr.String())
	}
	r.stop()
}

// A signal to a pipeline ends the writer and the upload: a part of the content is not taken for the whole.
func TestE2_SignalEndsTheWriterOfAnUpload(t *testing.T) {
	t.Parallel()
	r := receive(t)
	cmd, in, stderr := r.uploadsInput()
	if err := errors.Join(cmd.Process.Signal(syscall.SIGINT), in.Close()); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, cmd); status != 130 || !strings.Contains(stderr.String(), "stint: 1 unfinished: ") {
		t.Errorf("it ends with %d, and says %q", status, stderr.String())
	}
	if files, err := filepath.Glob(filepath.Join(r.dir, "inbox", "input*")); err != nil || len(files) > 0 {
		t.Errorf("the server has %v, %v", files, err)
	}
	r.stop()
}

// An upload that was cancelled and retried counts as what it has become in the end. One of
// standard input cannot be read again after a pause, which ends it.
func TestE2_LastStateOfAnUploadCounts(t *testing.T) {
	t.Parallel()
	r := receive(t)
	r.file("slow", 300<<10)
	late := r.file("late", 1000)
	cmd := r.uploads("slow", "late", "--chunk", "64K", "--rate", "64KiB/s", "-j1", "--progress", "json")
	var said strings.Builder
	cmd.Stderr = &said
	out := startLines(t, cmd)
	id := r.await("one that waits", func(all []transfer.Transfer) bool {
		return len(all) == 2 && all[1].State == queue.Waiting
	})[1].ID.String()
	r.stint("cancel", id, "--server", "uploads").want(t, "1 task cancelled\n", "", 0)
	for line := out.next(); !strings.Contains(line, `"cancelled"`); { // it has been counted then
		line = out.next()
	}
	r.stint("retry", id, "--server", "uploads").want(t, "1 task to run again\n", "", 0)
	if status := finish(t, cmd); status != 0 || !strings.Contains(said.String(), "2 sent") ||
		!strings.Contains(said.String(), "0 failed\n") {
		t.Errorf("exit status %d: %s", status, said.String())
	}
	r.has("late", late)

	cmd = r.uploads("-", "--name", "input", "--rate", "64KiB/s", "--chunk", "64K")
	cmd.Stdin = bytes.NewReader(r.file("in", 1<<20))
	said.Reset()
	cmd.Stderr = &said
	start(t, cmd)
	r.await("one that runs", func(all []transfer.Transfer) bool {
		return len(all) == 3 && all[2].State == queue.Running
	})
	r.stint("pause", "--kind", "stint.upload", "--server", "uploads").want(t,
		"1 task running and asked to end; --wait waits until it has ended\n", "", 0)
	if status := finish(t, cmd); status != 1 || !strings.Contains(said.String(), "standard input cannot be read again") ||
		!strings.Contains(said.String(), "0 failed, 1 cancelled\n") {
		t.Errorf("exit status %d: %s", status, said.String())
	}
}
