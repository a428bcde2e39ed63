package transfer_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// half has an upload of content stop in the middle: another queue, as a new process would,
// finds it. It returns the upload and its file.
func (r *rig) half(all []byte, u transfer.Upload) (queue.ID, string) {
	r.t.Helper()
	g := newGate(r.t, int64(len(all)/2))
	r.server.content = g.content
	u.Path, u.ChunkSize = filepath.Join(r.t.TempDir(), "half.bin"), chunkSize
	write(r.t, u.Path, all)
	id := r.addUpload(u, queue.Options{})
	stop := r.run(1)
	<-g.reached // lanes may have ended before
	stop()
	g.open()
	r.restart()
	return id, u.Path
}

// Chunks that the server has are not sent again after a restart, and the one that was being
// sent is pending.
func TestE4_ResumeSkipsDoneChunks(t *testing.T) {
	for _, lanes := range []int{1, 4} {
		for _, extensions := range []string{allExtensions, "creation,concatenation"} {
			r := newRig(t, transfer.Config{})
			r.server.extensions = extensions
			want := content(1, 20*chunkSize+100)
			id, _ := r.half(want, transfer.Upload{Lanes: lanes, Verify: true})
			task := r.until(id, "waiting", func(task queue.Task) bool { return task.State == queue.Waiting })
			seen, err := transfer.Of(task)
			if err != nil || !slices.Contains(seen.Chunks, transfer.ChunkDone) || task.Failures != 0 ||
				slices.Contains(seen.Chunks, transfer.ChunkUploading) {
				t.Errorf("after the stop, it is %+v, error %v", seen, err)
			}
			r.run(1)
			result, err := queue.Result[transfer.Result](r.wait(id, queue.Succeeded))
			r.server.has(t, "half.bin", want)
			if err != nil || result.Skipped < seen.Done || result.Sent > result.Size-result.Skipped+int64(lanes)*chunkSize {
				t.Errorf("with %d bytes done, the result is %+v, error %v", seen.Done, result, err)
			}
			if most := int64(len(want) + lanes*chunkSize); r.server.bytes() > most {
				t.Errorf("the server received %d bytes; want %d at most", r.server.bytes(), most)
			}
		}
	}
}

// A file that was touched is compared with what was sent. If it cannot be read, the attempt fails, and
// what the server has is kept for the next one.
func TestE4_FileThatCannotBeReadForComparison(t *testing.T) {
	for _, verify := range []bool{false, true} {
		r := newRig(t, transfer.Config{})
		id, path := r.half(content(1, 20*chunkSize), transfer.Upload{Verify: verify})
		task, err := r.queue.Get(t.Context(), id)
		if err != nil || len(task.Checkpoint) == 0 {
			t.Fatalf("the checkpoint has %d bytes, error %v", len(task.Checkpoint), err)
		}
		later := time.Now().Add(time.Hour)
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
		if err := transfer.ResumeUnreadable(t.Context(), path, task.Checkpoint); !errors.Is(err, os.ErrClosed) ||
			errors.Is(err, transfer.ErrChanged) {
			t.Errorf("verified: %t: the error is %v", verify, err)
		}
	}
}

// A file that was touched goes on if it has the same content, and starts over if a chunk that
// the server has is another.
func TestE4_FileThatChangedBetweenAttempts(t *testing.T) {
	tests := []struct {
		name    string
		change  func(all []byte) []byte
		verify  bool
		created int
	}{
		{name: "touched", change: func(all []byte) []byte { return all }, created: 1},
		{name: "touched and verified", change: func(all []byte) []byte { return all }, verify: true, created: 1},
		{name: "the first byte", change: func(all []byte) []byte { all[0]++; return all }, created: 2},
		{name: "the last byte", change: func(all []byte) []byte { all[len(all)-1]++; return all }, created: 1},
		{
			name: "the last byte of a verified file", verify: true,
			change: func(all []byte) []byte { all[len(all)-1]++; return all }, created: 2,
		},
		{name: "shorter", change: func(all []byte) []byte { return all[:chunkSize] }, created: 2},
		{name: "longer", change: func(all []byte) []byte { return append(all, 1) }, created: 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, transfer.Config{})
			id, path := r.half(content(1, 20*chunkSize), transfer.Upload{Verify: test.verify})
			want := test.change(content(1, 20*chunkSize))
			write(t, path, want)
			later := time.Now().Add(time.Hour)
			if err := os.Chtimes(path, later, later); err != nil {
				t.Fatal(err)
			}
			r.run(1)
			r.wait(id, queue.Succeeded)
			r.server.has(t, "half.bin", want)
			if r.server.created != test.created || len(r.server.uploads) != 1 {
				t.Errorf("%d uploads were created, and there are %d; want %d, and 1", r.server.created,
					len(r.server.uploads), test.created)
			}
		})
	}
}

// A file that changes or shrinks while it is read fails the attempt with an error that says
// so, and nothing of it is complete at the server.
func TestE4_FileThatChangesWhileItIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		change func(path string) error
		want   string
	}{
		"shrinks": {func(path string) error { return os.Truncate(path, 5*chunkSize) }, "shrank"},
		"grows":   {func(path string) error { return os.Truncate(path, 50*chunkSize) }, "grew from"},
		"changes": {func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) }, "was written to"},
	} {
		for _, lanes := range []int{1, 3} {
			t.Run(name, func(t *testing.T) {
				r := newRig(t, transfer.Config{})
				g := newGate(t, 4*chunkSize)
				r.server.content = g.content
				path := filepath.Join(t.TempDir(), "a")
				write(t, path, content(1, 20*chunkSize))
				id := r.addUpload(transfer.Upload{Path: path, ChunkSize: chunkSize, Lanes: lanes}, queue.Options{MaxAttempts: 1})
				r.run(1)
				<-g.reached
				if err := test.change(path); err != nil {
					t.Fatal(err)
				}
				g.open()
				task := r.wait(id, queue.Dead)
				if !strings.Contains(task.Error, transfer.ErrChanged.Error()) || !strings.Contains(task.Error, test.want) {
					t.Errorf("the error is %q; want %q", task.Error, test.want)
				}
				if _, ok := r.server.file("a"); ok {
					t.Error("the server has the file")
				}
			})
		}
	}
}

func TestE4_FileThatVanished(t *testing.T) {
	r := newRig(t, transfer.Config{})
	id, path := r.half(content(1, 20*chunkSize), transfer.Upload{})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r.run(1)
	task := r.wait(id, queue.Dead)
	if task.Failures != 1 || !strings.Contains(task.Error, "no such file") ||
		!strings.Contains(task.Error, "retry the upload") {
		t.Errorf("after %d failures, the error is %q", task.Failures, task.Error)
	}
	// With the file back, the upload goes on.
	want := content(1, 20*chunkSize)
	write(t, path, want)
	if err := r.queue.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r.wait(id, queue.Succeeded)
	r.server.has(t, "half.bin", want)
}

// A file of /proc has no size before it is read. Its upload fails, and does not send an empty file.
func TestE4_FileWithoutASize(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // no other system has such files
	}
	r := newRig(t, transfer.Config{})
	id := r.addUpload(transfer.Upload{Path: "/proc/version"}, queue.Options{})
	r.run(1)
	task := r.wait(id, queue.Dead)
	if task.Failures != 1 || !strings.Contains(task.Error, "standard input") {
		t.Errorf("after %d failures, the error is %q", task.Failures, task.Error)
	}
	if _, ok := r.server.file("version"); ok {
		t.Error("the server has the file")
	}
}

// A file that has become a named pipe, which nothing opens for writing, does not keep its slot.
func TestE4_FileThatBecomesNamedPipe(t *testing.T) {
	r := newRig(t, transfer.Config{})
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, content(1, 10))
	id := r.addUpload(transfer.Upload{Path: path}, queue.Options{})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r.run(1)
	if task := r.wait(id, queue.Dead); !strings.Contains(task.Error, "is not a regular file") {
		t.Errorf("the error is %q", task.Error)
	}
}

// A server that has lost the upload gets the whole file again, once in an attempt.
func TestE4_UploadThatTheServerLost(t *testing.T) {
	for _, lanes := range []int{1, 4} {
		r := newRig(t, transfer.Config{})
		want := content(1, 20*chunkSize)
		id, _ := r.half(want, transfer.Upload{Lanes: lanes})
		r.server.mu.Lock()
		clear(r.server.uploads)
		r.server.mu.Unlock()
		r.run(1)
		task := r.wait(id, queue.Succeeded)
		r.server.has(t, "half.bin", want)
		result, err := queue.Result[transfer.Result](task)
		if err != nil || result.Skipped != 0 || task.Failures != 0 {
			t.Errorf("after %d failures, the result is %+v, error %v", task.Failures, result, err)
		}
	}
}

// Answers that a later request can better are repeated within the attempt, from the offset
// that the server says.
func TestE4_RequestsThatAreRepeated(t *testing.T) {
	status := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { w.WriteHeader(code) }
	}
	abort := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	tests := []struct {
		name   string
		method string
		answer func(w http.ResponseWriter)
	}{
		{name: "checksum", method: http.MethodPatch, answer: status(460)},
		{name: "conflict", method: http.MethodPatch, answer: status(http.StatusConflict)},
		{name: "locked", method: http.MethodPatch, answer: status(http.StatusLocked)},
		{name: "broken", method: http.MethodPatch, answer: abort},
		{name: "broken creation", method: http.MethodPost, answer: abort},
		{name: "no offset", method: http.MethodPatch, answer: status(http.StatusNoContent)},
		{name: "wrong offset", method: http.MethodPatch, answer: func(w http.ResponseWriter) {
			w.Header().Set("Upload-Offset", "12345678")
			w.WriteHeader(http.StatusNoContent)
		}},
		{name: "wrong offset of HEAD", method: http.MethodHead, answer: func(w http.ResponseWriter) {
			w.Header().Set("Upload-Offset", "12345678")
		}},
		{name: "busy", method: http.MethodOptions, answer: func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, transfer.Config{})
			var seen, headed atomic.Int64
			r.server.fault = func(w http.ResponseWriter, req *http.Request) bool {
				if test.method == http.MethodHead && req.Method == http.MethodPatch && headed.Add(1) == 2 {
					w.WriteHeader(http.StatusInternalServerError) // so that there is a HEAD
					return true
				}
				if req.Method != test.method || seen.Add(1)%3 != 1 {
					return false
				}
				test.answer(w)
				return true
			}
			want := content(1, 10*chunkSize)
			id := r.add("a", want, transfer.Upload{ChunkSize: chunkSize, Lanes: 2}, queue.Options{MaxAttempts: 1})
			r.run(1)
			r.wait(id, queue.Succeeded)
			r.server.has(t, "a", want)
			if seen.Load() < 2 {
				t.Error("no request was repeated")
			}
		})
	}
}

// An empty file arrives once, also if the answers to its requests are lost, and if the server can only take files
// whose length is known.
func TestE4_EmptyFileArrivesOnce(t *testing.T) {
	for _, extensions := range []string{allExtensions, "creation,checksum"} {
		r := newRig(t, transfer.Config{})
		r.server.extensions = extensions
		lost := make(map[string]bool) // methods; guarded by mu
		var mu sync.Mutex
		r.server.fault = func(_ http.ResponseWriter, req *http.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if req.Method == http.MethodOptions || lost[req.Method] || extensions != allExtensions {
				return false
			}
			lost[req.Method] = true
			if req.Method == http.MethodPost {
				r.server.serveEndpoint(httptest.NewRecorder(), req)
			} else {
				r.server.patch(httptest.NewRecorder(), req, r.server.at(req.URL.Path))
			}
			panic(http.ErrAbortHandler)
		}
		id := r.add("a", nil, transfer.Upload{Verify: true}, queue.Options{MaxAttempts: 1})
		r.run(1)
		r.wait(id, queue.Succeeded)
		r.server.mu.Lock()
		complete := 0
		for _, u := range r.server.uploads {
			if u.length == 0 {
				complete++
			}
		}
		r.server.mu.Unlock()
		if complete != 1 {
			t.Errorf("%s: the server has %d files; requests %q", extensions, complete, r.server.requests)
		}
	}
}

// Answers that no repetition can help end the upload at once, with what to do about it.
func TestE4_PermanentFailures(t *testing.T) {
	for status, remedy := range map[int]string{
		http.StatusUnauthorized:          "HeaderEnv",
		http.StatusForbidden:             "HeaderEnv",
		http.StatusNotFound:              "check the URL (POST",
		http.StatusRequestEntityTooLarge: "too large",
		http.StatusPreconditionFailed:    "version",
		http.StatusBadRequest:            "400",
	} {
		r := newRig(t, transfer.Config{})
		r.server.fault = func(w http.ResponseWriter, req *http.Request) bool {
			if req.Method != http.MethodPost {
				return false
			}
			http.Error(w, "the server's words", status)
			return true
		}
		id := r.add("a", content(1, 100), transfer.Upload{}, queue.Options{})
		r.run(1)
		task := r.wait(id, queue.Dead)
		if task.Failures != 1 || !strings.Contains(task.Error, remedy) ||
			!strings.Contains(task.Error, "the server's words") ||
			!strings.Contains(task.Error, strconv.Itoa(status)) || r.server.count(http.MethodPost) != 1 {
			t.Errorf("status %d: %d failures, %d requests, error %q; want %q", status, task.Failures,
				r.server.count(http.MethodPost), task.Error, remedy)
		}
	}
	r := newRig(t, transfer.Config{})
	r.server.maxSize = 99
	r.run(1)
	task := r.wait(r.add("a", content(1, 100), transfer.Upload{}, queue.Options{}), queue.Dead)
	if !strings.Contains(task.Error, "takes 99 at most") || r.server.count(http.MethodPost) != 0 {
		t.Errorf("the error is %q", task.Error)
	}
}

// A server whose certificate is not trusted, or that speaks HTTP on a URL of HTTPS, ends the upload at
// once.
func TestE4_ServersThatAreOthers(t *testing.T) {
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	for url, remedy := range map[string]string{
		untrusted.URL: "SSL_CERT_FILE", strings.Replace(plain.URL, "http:", "https:", 1): "http://",
	} {
		r := newRig(t, transfer.Config{})
		id := r.add("a", content(1, 100), transfer.Upload{To: url}, queue.Options{})
		r.run(1)
		if task := r.wait(id, queue.Dead); task.Failures != 1 || !strings.Contains(task.Error, remedy) ||
			strings.Contains(task.Error, "in a row") {
			t.Errorf("%d failures, error %q; want %q", task.Failures, task.Error, remedy)
		}
	}
}

// A server that takes no more bytes, or does not answer, fails the request after Stall.
func TestE4_ServersThatStall(t *testing.T) {
	for _, method := range []string{http.MethodPatch, http.MethodHead, http.MethodPost} {
		r := newRig(t, transfer.Config{Stall: 300 * time.Millisecond})
		r.server.extensions = "creation" // so that a slow test goes on where it was
		var once atomic.Bool
		release := make(chan struct{})
		t.Cleanup(func() { close(release) })
		r.server.fault = func(w http.ResponseWriter, req *http.Request) bool {
			if req.Method == method && once.CompareAndSwap(false, true) {
				<-release
				return true
			}
			if method == http.MethodHead && req.Method == http.MethodPatch && !once.Load() {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
			return false
		}
		want := content(1, 200*chunkSize) // more than fits into the buffers of a connection
		id := r.add("a", want, transfer.Upload{ChunkSize: 100 * chunkSize}, queue.Options{MaxAttempts: 1})
		r.run(1)
		r.wait(id, queue.Succeeded)
		r.server.has(t, "a", want)
	}
}

// The input of the process has no length before its end.
func TestE4_InputOfUnknownLength(t *testing.T) {
	for _, size := range []int{0, 1, 3 * chunkSize, 3*chunkSize + 1} {
		want := content(1, size)
		r := newRig(t, transfer.Config{Input: io.LimitReader(bytes.NewReader(want), int64(size))})
		var patches atomic.Int64
		r.server.fault = func(w http.ResponseWriter, req *http.Request) bool {
			if req.Method == http.MethodPatch && patches.Add(1)%2 == 1 {
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
			return false
		}
		id := r.addUpload(transfer.Upload{Path: transfer.Input, Name: "in", ChunkSize: chunkSize}, queue.Options{})
		again := r.addUpload(transfer.Upload{Path: transfer.Input, Name: "again"}, queue.Options{})
		r.run(1)
		task := r.wait(id, queue.Succeeded)
		r.server.has(t, "in", want)
		if result, err := queue.Result[transfer.Result](task); err != nil || result.Size != int64(size) {
			t.Errorf("the result is %+v, error %v", result, err)
		}
		if task := r.wait(again, queue.Dead); !strings.Contains(task.Error, "read once") || task.Failures != 1 {
			t.Errorf("the second upload of the input: %d failures, error %q", task.Failures, task.Error)
		}
	}
}

// While the input of the process is uploaded, its progress is known, if not its size.
func TestE1_ProgressOfTheInput(t *testing.T) {
	in, feed := io.Pipe()
	r := newRig(t, transfer.Config{Input: in})
	r.run(1)
	id := r.addUpload(transfer.Upload{Path: transfer.Input, Name: "in", ChunkSize: chunkSize}, queue.Options{})
	want := content(1, 2*chunkSize+1)
	write := func(part []byte) {
		if _, err := feed.Write(part); err != nil {
			t.Error(err)
		}
	}
	write(want[:2*chunkSize])
	write(want[2*chunkSize:])
	r.until(id, "reported", func(task queue.Task) bool { return task.Progress.Done >= chunkSize })
	task, err := r.queue.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if seen, err := transfer.Of(task); err != nil || seen.Done < chunkSize || seen.Size != 0 {
		t.Errorf("%d bytes of %d are done, %v", seen.Done, seen.Size, err)
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	r.wait(id, queue.Succeeded)
	r.server.has(t, "in", want)
}

// Add refuses what cannot be uploaded, with all problems of the upload.
func TestE2_AddRefuses(t *testing.T) {
	r := newRig(t, transfer.Config{})
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, nil)
	good := transfer.Upload{Path: path, To: r.server.url()}
	pair := func(key string) map[string]string { return map[string]string{key: ""} }
	for name, test := range map[string]struct {
		upload transfer.Upload
		want   error
	}{
		"no file":     {transfer.Upload{Path: path + "x", To: good.To}, os.ErrNotExist},
		"a directory": {transfer.Upload{Path: filepath.Dir(path), To: good.To}, queue.ErrInvalid},
		"another variable": {
			transfer.Upload{Path: path, To: good.To, HeaderEnv: map[string]string{"Authorization": "HOME"}}, queue.ErrInvalid,
		},
		"two authorizations": {
			transfer.Upload{
				Path: path, To: good.To, TokenFile: "x", HeaderEnv: map[string]string{"authorization": "STINT_UPLOAD_AUTH"},
			}, queue.ErrInvalid,
		},
		"a token for S3": {transfer.Upload{Path: path, To: "s3://films/", TokenFile: "x"}, queue.ErrInvalid},
		"a checksum of the input": {
			transfer.Upload{Path: transfer.Input, Name: "in", To: good.To, Verify: true}, queue.ErrInvalid,
		},
		"no path":      {transfer.Upload{To: good.To}, queue.ErrInvalid},
		"no URL":       {transfer.Upload{Path: path}, queue.ErrInvalid},
		"another URL":  {transfer.Upload{Path: path, To: "ftp://example.com/"}, queue.ErrInvalid},
		"lanes":        {transfer.Upload{Path: path, To: good.To, Lanes: 17}, queue.ErrInvalid},
		"a chunk size": {transfer.Upload{Path: path, To: good.To, ChunkSize: -1}, queue.ErrInvalid},
		// 10,000 chunks of 2⁶⁰ bytes are 0 bytes modulo 2⁶⁴, by which the attempt divided.
		"a large chunk size": {transfer.Upload{Path: path, To: good.To, ChunkSize: 1 << 60}, queue.ErrInvalid},
		"metadata":           {transfer.Upload{Path: path, To: good.To, Metadata: pair("a b")}, queue.ErrInvalid},
		"own metadata":       {transfer.Upload{Path: path, To: good.To, Metadata: pair("sha256")}, queue.ErrInvalid},
	} {
		if _, err := transfer.Add(t.Context(), r.queue, queue.Options{}, good, test.upload); !errors.Is(err, test.want) {
			t.Errorf("%s: %v; want %v", name, err, test.want)
		}
	}
	if n, err := r.queue.Count(t.Context(), queue.Filter{}); err != nil || len(n) > 0 {
		t.Errorf("there are tasks: %v, error %v", n, err)
	}
}

// damage changes one byte of the first bodies.
func damage(bodies int64) func(*http.Request, io.Reader) io.Reader {
	var seen atomic.Int64
	return func(_ *http.Request, body io.Reader) io.Reader {
		damaged := seen.Add(1) > bodies
		return readerFunc(func(p []byte) (int, error) {
			n, err := body.Read(p)
			if n > 0 && !damaged {
				p[0]++
				damaged = true
			}
			return n, err
		})
	}
}

// A chunk that arrives damaged is sent again, if the server has checksums of chunks. Otherwise
// Verify finds the damage at the end, and the whole file is sent again.
func TestE4_DamageIsFound(t *testing.T) {
	for _, test := range []struct {
		extensions, algorithms string
		created                int
	}{
		{allExtensions, "sha1,sha256", 1},
		{allExtensions, "sha256,crc32c", 1},
		{allExtensions, "sha1", 2},
		{"creation,termination,concatenation", "", 2},
	} {
		for _, lanes := range []int{1, 3} {
			r := newRig(t, transfer.Config{})
			r.server.extensions, r.server.algorithms = test.extensions, test.algorithms
			r.server.content = damage(2)
			want := content(1, 6*chunkSize)
			u := transfer.Upload{ChunkSize: chunkSize, Lanes: lanes, Verify: true}
			task := r.wait(r.runs(r.add("a", want, u, queue.Options{})), queue.Succeeded)
			r.server.has(t, "a", want)
			made := test.created * lanes
			if lanes > 1 {
				made += 1 // the file
			}
			if r.server.created != made || task.Failures != 0 {
				t.Errorf("%d lanes, %s, %s: %d uploads were created; want %d; %d failures", lanes, test.extensions,
					test.algorithms, r.server.created, made, task.Failures)
			}
		}
	}
}

// Each chunk has a checksum of an algorithm that the server takes; CRC32C is preferred.
func TestE4_ChecksumOfChunks(t *testing.T) {
	for announced, want := range map[string]string{
		"sha1,sha256": "sha256", "sha256,sha1,crc32c": "crc32c", "crc32c": "crc32c", "sha1": "", "": "",
	} {
		for _, input := range []bool{false, true} {
			data := content(1, 3*chunkSize)
			cfg := transfer.Config{}
			if input {
				cfg.Input = bytes.NewReader(data)
			}
			r := newRig(t, cfg)
			r.server.algorithms = announced
			var id queue.ID
			if input {
				id = r.addUpload(transfer.Upload{Path: transfer.Input, Name: "a", ChunkSize: chunkSize}, queue.Options{})
			} else {
				id = r.add("a", data, transfer.Upload{ChunkSize: chunkSize}, queue.Options{})
			}
			r.wait(r.runs(id), queue.Succeeded)
			r.server.has(t, "a", data)
			for i, request := range r.server.requests {
				algorithm, _, _ := strings.Cut(r.server.headers[i].Get("Upload-Checksum"), " ")
				if strings.HasPrefix(request, http.MethodPatch) && algorithm != want {
					t.Errorf("the server takes %q, input %t: %s has the algorithm %q; want %q", announced, input, request, algorithm,
						want)
				}
			}
		}
	}
}

// After an answer with a long Retry-After, the upload leaves its slot for that time, or for a year if that is less.
func TestE4_ServerThatNamesATime(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for seconds, want := range map[string]time.Duration{"3600": time.Hour, "9223372037": year} {
		r := newRig(t, transfer.Config{})
		r.server.fault = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", seconds)
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		id := r.runs(r.add("a", content(1, 10), transfer.Upload{}, queue.Options{}))
		task := r.until(id, "scheduled", func(task queue.Task) bool { return task.Failures > 0 })
		if delay := task.RunAt.Sub(task.Changed).Round(time.Minute); delay != want || len(r.server.requests) != 1 {
			t.Errorf("after %d requests, the next attempt is in %s; want %s", len(r.server.requests), delay, want)
		}
	}
}
