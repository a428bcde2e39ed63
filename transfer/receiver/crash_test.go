package receiver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/transfer/receiver"
)

// victim is a receiver in a child process that kills itself again and again.
type victim struct {
	t     *testing.T
	rnd   *rand.Rand
	dir   string
	base  string // of URLs; "" while no process runs
	cmd   *exec.Cmd
	kills int
	sent  atomic.Int64 // bytes of bodies; a connection may outlive its request
}

// start starts the process until one lives long enough to serve.
func (v *victim) start() {
	v.t.Helper()
	for v.base == "" {
		v.cmd = exec.CommandContext(v.t.Context(), os.Args[0])
		v.cmd.Env = append(os.Environ(), childDir+"="+v.dir, childDies+"="+strconv.Itoa(1+v.rnd.IntN(40)))
		var output strings.Builder
		v.cmd.Stderr = &output
		out, err := v.cmd.StdoutPipe()
		if err == nil {
			err = v.cmd.Start()
		}
		if err != nil {
			v.t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err == nil {
			v.base = "http://" + strings.TrimSpace(line)
			return
		}
		v.buried()
		if output.Len() > 0 {
			v.t.Fatalf("the process failed: %s", output.String())
		}
	}
}

// buried waits for the process that has killed itself.
func (v *victim) buried() {
	var exit *exec.ExitError
	if err := v.cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		v.t.Fatalf("the process was not killed: %v", err)
	}
	v.kills++
	v.base = ""
}

// call sends a request, and returns nil if the process was killed meanwhile.
func (v *victim) call(method, path string, body []byte, h ...string) *answer {
	v.t.Helper()
	v.start()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.base+path, &counted{bytes.NewReader(body), &v.sent})
	if err != nil {
		v.t.Fatal(err)
	}
	req.ContentLength = int64(len(body))
	if len(body) == 0 {
		req.Body = http.NoBody
	}
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		v.buried()
		return nil
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		v.buried()
		return nil
	}
	return &answer{Response: resp, body: string(text)}
}

type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (v *victim) must(a *answer, status ...int) *answer {
	v.t.Helper()
	if !slices.Contains(status, a.StatusCode) {
		v.t.Fatalf("%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL, a.StatusCode, status, a.body)
	}
	return a
}

// repeat sends a request until it is answered.
func (v *victim) repeat(method, path string, body []byte, h ...string) *answer {
	for {
		if resp := v.call(method, path, body, h...); resp != nil {
			return resp
		}
	}
}

// tus uploads a file or a part, and resumes it until it is there.
func (v *victim) tus(data []byte, h ...string) (path string) {
	v.t.Helper()
	h = append([]string{"Tus-Resumable", "1.0.0"}, h...)
	path = v.must(v.repeat("POST", "/files/", nil, append(h, "Upload-Length", strconv.Itoa(len(data)))...), 201).
		Header.Get("Location")
	for {
		head := v.must(v.repeat("HEAD", path, nil, h[:2]...), 200)
		offset, err := strconv.Atoi(head.Header.Get("Upload-Offset"))
		if err != nil {
			v.t.Fatal(err)
		}
		if offset == len(data) {
			return path
		}
		resp := v.call("PATCH", path, data[offset:], "Tus-Resumable", "1.0.0", "Upload-Offset", strconv.Itoa(offset),
			"Content-Type", "application/offset+octet-stream")
		if resp != nil {
			v.must(resp, 204)
		}
	}
}

// draft uploads a file by the IETF draft.
func (v *victim) draft(data []byte, name string) {
	v.t.Helper()
	version := []string{"Upload-Draft-Interop-Version", "8"}
	path := v.must(v.repeat("PUT", "/files/"+name, nil, append(version, "Upload-Complete", "?0", "Upload-Length",
		strconv.Itoa(len(data)))...), 201).Header.Get("Location")
	for {
		head := v.must(v.repeat("HEAD", path, nil, version...), 204)
		if head.Header.Get("Upload-Complete") == "?1" {
			return
		}
		offset, err := strconv.Atoi(head.Header.Get("Upload-Offset"))
		if err != nil {
			v.t.Fatal(err)
		}
		resp := v.call("PATCH", path, data[offset:], append(version, "Upload-Offset", strconv.Itoa(offset),
			"Upload-Complete", "?1", "Content-Type", "application/partial-upload")...)
		if resp != nil {
			v.must(resp, 200)
		}
	}
}

// plain uploads a file by the plain protocol.
func (v *victim) plain(data []byte, name string) {
	v.t.Helper()
	const chunk = 1 << 20
	for at := 0; at < len(data); at += chunk {
		body := data[at:min(at+chunk, len(data))]
		v.must(v.repeat("PUT", fmt.Sprintf("/files/%s/%d?size=%d", name, at, len(data)), body), 200, 201)
	}
	v.must(v.repeat("POST", "/files/"+name+"/merge", nil), 201)
}

// parts uploads a file in three partial uploads of tus, with or without places.
func (v *victim) parts(data []byte, name string, placed bool) {
	v.t.Helper()
	var urls []string
	third := len(data) / 3
	for i := range 3 {
		part := data[i*third : (i+1)*third]
		if i == 2 {
			part = data[i*third:]
		}
		h := []string{"Upload-Concat", "partial"}
		if placed {
			place := fmt.Sprintf("group-of-%024s %d %d", name, i*third, len(data))
			h = append(h, "Upload-Metadata", "part-of "+b64(place))
		}
		urls = append(urls, v.tus(part, h...))
	}
	v.must(v.repeat("POST", "/files/", nil, "Tus-Resumable", "1.0.0", "Upload-Concat", "final;"+strings.Join(urls, " "),
		"Upload-Metadata", filename(name)), 201)
}

// TestE4_KillsLoseNothing kills the receiver before random changes of its files, also
// in the middle of a write, and resumes: each file arrives, and nothing else is left.
func TestE4_KillsLoseNothing(t *testing.T) {
	const killsMin = 60
	v := &victim{t: t, rnd: seeded.Rand(t), dir: filepath.Join(t.TempDir(), "uploads")}
	want := map[string][]byte{}
	payload := int64(0)
	for i := 0; v.kills < killsMin; i++ {
		name := fmt.Sprintf("file-%d", i)
		data := content(uint64(i), 1+v.rnd.IntN(4<<20))
		want[name] = data
		payload += int64(len(data))
		switch i % 5 {
		case 0:
			v.tus(data, "Upload-Metadata", filename(name))
		case 1:
			v.draft(data, name)
		case 2:
			v.plain(data, name)
		case 3:
			v.parts(data, name, true)
		case 4:
			v.parts(data, name, false)
		}
	}
	if v.base != "" {
		_ = v.cmd.Process.Kill()
		_ = v.cmd.Wait()
	}
	// A receiver that lives announces what is left, and removes what was created by requests
	// whose answer was lost.
	hooked := v.hooked()
	s := openIn(t, v.dir, receiver.Config{Finished: func(_ context.Context, u receiver.Upload) error {
		hooked[filepath.Base(u.Path)] = true
		return nil
	}})
	s.Sweep(far())
	s.Close()
	s.clean()
	s.names(slices.Collect(maps.Keys(want))...)
	for name, data := range want {
		s.file(name, data)
		if !hooked[name] {
			t.Errorf("Finished was not called for %s", name)
		}
	}
	if left := list(t, filepath.Join(v.dir, ".uploads")); !slices.Equal(left, []string{"lock"}) {
		t.Errorf("left are %q", left)
	}
	again := v.sent.Load() - payload
	// A kill costs at most what has no record yet, and what was under way: pipes and buffers.
	if most := int64(v.kills) * (receiver.RecordEvery + 4<<20); again > most {
		t.Errorf("%d bytes were sent again after %d kills", again, v.kills)
	}
	t.Logf("%d files, %d bytes, %d kills, %d bytes sent again", len(want), payload, v.kills, again)
}

func (v *victim) hooked() map[string]bool {
	v.t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(v.dir), hookedFile))
	if err != nil {
		v.t.Fatal(err)
	}
	all := map[string]bool{}
	for name := range strings.FieldsSeq(string(text)) {
		all[name] = true
	}
	return all
}

// journalLines returns the records of a journal as they are written.
func journalLines(tb testing.TB, name string) (lines []string) {
	tb.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// TestE4_PowerLossFallsBack: after a restart of the machine, an upload continues at the
// first chunk whose bytes the disk does not have.
func TestE4_PowerLossFallsBack(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(10, 5<<20)
	url := s.create(len(data), "Upload-Metadata", filename("a"))
	for at := 0; at < 4<<20; at += 1 << 20 {
		s.want(s.patch(url, at, data[at:at+1<<20]), 204)
	}
	s.Close()
	id := url[strings.LastIndexByte(url, '/')+1:]
	name := filepath.Join(s.dir, ".uploads", id)

	// The same boot: the pages are in memory, and nothing is read.
	s = openIn(t, s.dir, receiver.Config{})
	if got := s.offset(url); got != 4<<20 {
		t.Fatalf("the offset is %d", got)
	}
	s.Close()

	// Another boot, and a page of the third chunk was not written.
	rewriteBoot(t, name+".log")
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 4096), 2<<20+8192); err != nil {
		t.Fatal(err)
	}
	f.Close()
	s = openIn(t, s.dir, receiver.Config{})
	if got := s.offset(url); got != 2<<20 {
		t.Fatalf("after the loss the offset is %d, want %d", got, 2<<20)
	}
	s.Close()
	s = openIn(t, s.dir, receiver.Config{})
	s.want(s.patch(url, 2<<20, data[2<<20:]), 204)
	s.file("a", data)
	s.clean()
}

// rewriteBoot makes a journal one of another boot.
func rewriteBoot(tb testing.TB, name string) {
	tb.Helper()
	var out strings.Builder
	for _, line := range journalLines(tb, name) {
		var rec map[string]any
		d := json.NewDecoder(strings.NewReader(line[9:]))
		d.UseNumber()
		if err := d.Decode(&rec); err != nil {
			tb.Fatal(err)
		}
		if _, ok := rec["boot"]; ok {
			rec["boot"] = "another"
		}
		text, err := json.Marshal(rec)
		if err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintf(&out, "%08x %s\n", receiver.CRC(text), text)
	}
	if err := os.WriteFile(name, []byte(out.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
}
