package s3_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/s3gateway"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/transfer"
	"github.com/stintgo/stint/transfer/internal/protocol"
	"github.com/stintgo/stint/transfer/s3"
)

// part is the smallest size of a part, in bytes.
const part = 5 << 20

// quick is a policy without noticeable delays.
var quick = retry.Policy{Attempts: 5, Base: time.Millisecond, Max: 2 * time.Millisecond}

// rig is a queue with the handler of uploads.
type rig struct {
	t     *testing.T
	store queue.Store
	queue *queue.Queue
	cfg   transfer.Config
	to    string // the endpoint
}

func newRig(t *testing.T, to string, cfg transfer.Config) *rig {
	t.Helper()
	store := memstore.New(memstore.Config{})
	t.Cleanup(func() { store.Close() })
	return newRigOn(t, store, to, cfg)
}

func newRigOn(t *testing.T, store queue.Store, to string, cfg transfer.Config) *rig {
	t.Helper()
	cfg.Retry = quick
	if cfg.S3 == nil {
		cfg.S3 = s3.Open
	}
	r := &rig{t: t, store: store, cfg: cfg, to: to}
	r.queue = queue.New(store, queue.Config{Retry: quick, Poll: 10 * time.Millisecond, Grace: time.Millisecond})
	transfer.Handle(r.queue, cfg)
	return r
}

// run runs the queue until the end of the test.
func (r *rig) run() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.queue.Run(ctx, stint.New(2, stint.Config{})) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			r.t.Error(err)
		}
	})
}

// add adds an upload of a file with a content.
func (r *rig) add(name string, content []byte, u transfer.Upload) queue.ID {
	r.t.Helper()
	u.Path = filepath.Join(r.t.TempDir(), name)
	write(r.t, u.Path, content)
	return r.addUpload(u)
}

func (r *rig) addUpload(u transfer.Upload) queue.ID {
	r.t.Helper()
	if u.To == "" {
		u.To = "s3://" + bucket + "/in"
	}
	u.Endpoint = r.to
	receipts, err := transfer.Add(r.t.Context(), r.queue, queue.Options{MaxAttempts: 2}, u)
	if err != nil {
		r.t.Fatal(err)
	}
	return receipts[0].ID
}

// wait waits until an upload is finished, and checks its state.
func (r *rig) wait(id queue.ID, state queue.State) queue.Task {
	r.t.Helper()
	task, err := r.queue.Wait(bounded(r.t), id)
	if err != nil {
		r.t.Fatalf("wait for the upload: %v; it is %s", err, task.State)
	}
	if task.State != state {
		r.t.Fatalf("the upload is %s (%s); want %s", task.State, task.Error, state)
	}
	return task
}

// content returns random bytes.
func content(seed byte, size int) []byte {
	all := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(all)
	return all
}

// Files of all sizes arrive with their metadata, in parts of one upload, from one lane and from
// several, and nothing is left over.
func TestE4_S3Arrives(t *testing.T) {
	g := newGateway(t)
	r := newRig(t, g.url, transfer.Config{})
	r.run()
	for _, c := range []struct {
		name string
		size int
		u    transfer.Upload
	}{
		{"empty", 0, transfer.Upload{Verify: true}},
		{"one byte.txt", 1, transfer.Upload{}},
		{"exact.bin", 2 * part, transfer.Upload{ChunkSize: part}},
		{"Größe + &%.png", part + 1, transfer.Upload{
			ChunkSize: 1, Verify: true, Metadata: map[string]string{"wer": "Jürgen"},
		}},
		{"lanes", 7*part + 11, transfer.Upload{ChunkSize: part, Lanes: 3, Verify: true}},
	} {
		want := content(byte(c.size), c.size)
		task := r.wait(r.add(c.name, want, c.u), queue.Succeeded)
		got, info := g.object(t, "in/"+c.name)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the object has %d bytes, and %d were sent", c.name, len(got), len(want))
		}
		result, err := queue.Result[transfer.Result](task)
		if err != nil || result.Sent != int64(c.size) || !strings.HasPrefix(result.URL, "s3://films/in/") {
			t.Errorf("%s: the result is %+v, %v", c.name, result, err)
		}
		if info.ChecksumCRC32C == "" {
			t.Errorf("%s: the object has no CRC32C: %+v", c.name, info)
		}
		sum := sha256.Sum256(want)
		if got := info.UserMetadata["Sha256"]; c.u.Verify && got != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: metadata sha256 is %q", c.name, got)
		}
		if ofParts := strings.Contains(info.ChecksumCRC32C, "-"); ofParts == c.u.Verify {
			t.Errorf("%s: CRC32C %s; it is of the whole object with Verify, else of its parts", c.name, info.ChecksumCRC32C)
		}
	}
	if n := g.uploads(t); n != 0 {
		t.Errorf("%d unfinished uploads are left", n)
	}
}

// The input, whose size is not known, arrives, also if the end is at the end of a part.
func TestE4_S3Input(t *testing.T) {
	g := newGateway(t)
	for i, size := range []int{0, 10, 2 * part, 2*part + 1} {
		want := content(byte(i), size)
		r := newRig(t, g.url, transfer.Config{Input: bytes.NewReader(want)})
		r.run()
		name := fmt.Sprint("input-", size)
		r.wait(r.addUpload(transfer.Upload{Path: transfer.Input, Name: name, ChunkSize: part}), queue.Succeeded)
		if got, _ := g.object(t, "in/"+name); !bytes.Equal(got, want) {
			t.Errorf("the object has %d bytes; want %d", len(got), size)
		}
	}
}

// The answer to a part is lost after the server has it: the part is not sent again, and above all not
// replaced by what is left of it, nothing.
func TestE4_S3AnswerToAPartOfTheInputIsLost(t *testing.T) {
	g := newGateway(t)
	for i, size := range []int{10, part, part + 1} {
		f := newFront(t, g)
		var sent atomic.Int64
		f.fault = func(w http.ResponseWriter, r *http.Request) bool {
			if !isPart(r) || sent.Add(1) > 1 {
				return false
			}
			f.proxy.ServeHTTP(httptest.NewRecorder(), r)
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		want := content(byte(i), size)
		r := newRig(t, f.url, transfer.Config{Input: bytes.NewReader(want)})
		r.run()
		name := fmt.Sprint("lost-", size)
		r.wait(r.addUpload(transfer.Upload{Path: transfer.Input, Name: name, ChunkSize: part}), queue.Succeeded)
		if got, _ := g.object(t, "in/"+name); !bytes.Equal(got, want) {
			t.Errorf("the object has %d bytes; want %d", len(got), size)
		}
		if n, want := int(sent.Load()), (size+part-1)/part; n != want {
			t.Errorf("%d parts of %d bytes were sent; want %d", n, size, want)
		}
	}
}

// The parts of an input that fails are deleted, because no attempt can continue it.
func TestE2_S3InputFails(t *testing.T) {
	g := newGateway(t)
	f := newFront(t, g)
	input := io.MultiReader(bytes.NewReader(content(1, 2*part)), readerFunc(func([]byte) (int, error) {
		return 0, errors.New("the pipe is broken")
	}))
	r := newRig(t, f.url, transfer.Config{Input: input})
	r.run()
	task := r.wait(r.addUpload(transfer.Upload{Path: transfer.Input, Name: "a", ChunkSize: part}), queue.Dead)
	if !strings.Contains(task.Error, "the pipe is broken") || f.parts.Load() != 2 {
		t.Errorf("%d parts were sent, and the error is %q", f.parts.Load(), task.Error)
	}
	if n := g.uploads(t); n != 0 {
		t.Errorf("%d unfinished uploads are left", n)
	}
}

// URLs with credentials, which would be kept in the store, and with parts that are not used are
// refused before that, and the error has no password.
func TestE4_S3RefusesURLs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, nil)
	for _, c := range []struct{ to, endpoint, says string }{
		{"s3://key:geheim@films/x", "", "more than a bucket and a prefix"},
		{"s3://films/x?versionId=1", "", "more than a bucket and a prefix"},
		{"s3://films/x#y", "", "more than a bucket and a prefix"},
		{"s3://films", "http://key:geheim@localhost", "without path and credentials"},
		{"s3://films", "http://localhost/minio", "without path and credentials"},
		{"s3://films", "localhost:9000", "is not the http or https URL of an S3 server"},
	} {
		r := newRig(t, c.endpoint, transfer.Config{})
		u := transfer.Upload{Path: path, To: c.to, Endpoint: c.endpoint}
		_, err := transfer.Add(t.Context(), r.queue, queue.Options{}, u)
		if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s at %s: %v; want %q", c.to, c.endpoint, err, c.says)
		}
	}
}

// A key of the metadata that cannot be a part of a header is refused at once.
func TestE4_S3RefusesKeysOfMetadata(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, nil)
	r := newRig(t, "", transfer.Config{})
	u := transfer.Upload{Path: path, To: "s3://films", Metadata: map[string]string{"a(b": "c"}}
	_, err := transfer.Add(t.Context(), r.queue, queue.Options{}, u)
	if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), `the metadata key "a(b"`) {
		t.Errorf("it is answered with %v", err)
	}
	u.Metadata = map[string]string{"Shot_7.by-me": "c"}
	if _, err := transfer.Add(t.Context(), r.queue, queue.Options{}, u); err != nil {
		t.Error(err)
	}
}

// firstLane is a server at which only the first lane can begin.
type firstLane struct {
	protocol.Server

	begun chan struct{} // closed when it has
}

// Begin is as protocol.Server says.
func (s *firstLane) Begin(ctx context.Context, f *protocol.File, l protocol.Lane) (*url.URL, int64, error) {
	if l.First == 0 {
		defer close(s.begun)
		return s.Server.Begin(ctx, f, l)
	}
	select {
	case <-s.begun:
		return nil, 0, errors.New("this lane cannot begin")
	case <-ctx.Done():
		return nil, 0, context.Cause(ctx)
	}
}

// The next attempt continues an upload of which only the first lane had begun as the same one.
func TestE4_S3LanesShareUpload(t *testing.T) {
	g := newGateway(t)
	f := newFront(t, g)
	var begun atomic.Int64
	f.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && r.URL.Query().Has("uploads") {
			begun.Add(1)
		}
		return false
	}
	var attempts atomic.Int64
	r := newRig(t, f.url, transfer.Config{S3: func(target protocol.Target) (protocol.Server, error) {
		server, err := s3.Open(target)
		if err != nil || attempts.Add(1) > 1 {
			return server, err
		}
		return &firstLane{Server: server, begun: make(chan struct{})}, nil
	}})
	r.run()
	want := content(1, 4*part)
	task := r.wait(r.add("a", want, transfer.Upload{ChunkSize: part, Lanes: 2}), queue.Succeeded)
	if got, _ := g.object(t, "in/a"); !bytes.Equal(got, want) {
		t.Error("the object differs from the file")
	}
	if n := g.uploads(t); n != 0 || begun.Load() != 1 || task.Failures != 1 || f.parts.Load() != 4 {
		t.Errorf("%d uploads were begun, %d are left, %d attempts failed, %d parts were sent", begun.Load(), n, task.Failures,
			f.parts.Load())
	}
}

// An upload that the server loses while it is sent is sent again, in the same attempt.
func TestE4_S3UploadVanishes(t *testing.T) {
	g := newGateway(t)
	f := newFront(t, g)
	arrived, release := f.hold(t, "3")
	r := newRig(t, f.url, transfer.Config{})
	r.run()
	want := content(1, 3*part)
	id := r.add("a", want, transfer.Upload{ChunkSize: part})
	select {
	case <-arrived:
	case <-time.After(waiting):
		t.Fatal("part 3 is not sent")
	}
	list, err := g.client.ListMultipartUploads(t.Context(), bucket, "", "", "", "", 1000)
	if err != nil || len(list.Uploads) != 1 {
		t.Fatalf("unfinished uploads: %+v, %v", list.Uploads, err)
	}
	if err := g.client.AbortMultipartUpload(t.Context(), bucket, "in/a", list.Uploads[0].UploadID); err != nil {
		t.Fatal(err)
	}
	release()
	task := r.wait(id, queue.Succeeded)
	if got, _ := g.object(t, "in/a"); !bytes.Equal(got, want) {
		t.Error("the object differs from the file")
	}
	if n := g.uploads(t); n != 0 || task.Failures != 0 || f.parts.Load() != 6 {
		t.Errorf("%d uploads are left, %d attempts failed, %d parts were sent; want 6", n, task.Failures, f.parts.Load())
	}
}

// lateStore is a store that takes its time until it has the URL of an upload.
type lateStore struct {
	queue.Store

	part chan struct{} // receives when a part is sent
	has  atomic.Bool   // the URL
}

// Heartbeat is as queue.Store says.
func (s *lateStore) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, all []queue.Heartbeat,
) ([]queue.Answer, error) {
	first := !s.has.Load() && slices.ContainsFunc(all, func(h queue.Heartbeat) bool {
		return bytes.Contains(h.Checkpoint, []byte("uploadId"))
	})
	if first {
		select { // the longer, the surer is it that a part that is sent too early is noticed
		case <-s.part:
		case <-time.After(300 * time.Millisecond):
		}
	}
	answers, err := s.Store.Heartbeat(ctx, now, w, all)
	if first && err == nil {
		s.has.Store(true)
	}
	return answers, err
}

// The store has the URL of an upload before its first part is sent, because a server keeps the parts of
// an upload that no checkpoint names.
func TestE4_S3StoreHasURLFirst(t *testing.T) {
	g := newGateway(t)
	f := newFront(t, g)
	inner := memstore.New(memstore.Config{})
	t.Cleanup(func() { inner.Close() })
	store := &lateStore{Store: inner, part: make(chan struct{}, 100)}
	f.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		if isPart(r) {
			if !store.has.Load() {
				t.Error("a part is sent, and the store does not have its upload")
			}
			store.part <- struct{}{}
		}
		return false
	}
	for i, u := range []transfer.Upload{{}, {ChunkSize: part, Lanes: 2}, {Path: transfer.Input, Name: "b"}} {
		store.has.Store(false)
		r := newRigOn(t, store, f.url, transfer.Config{Input: bytes.NewReader(content(2, part+1))})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.queue.Run(ctx, stint.New(2, stint.Config{})) }()
		if u.Path == transfer.Input {
			r.wait(r.addUpload(u), queue.Succeeded)
		} else {
			r.wait(r.add("a", content(1, part+1), u), queue.Succeeded)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if !store.has.Load() {
			t.Errorf("upload %d: the store was not given its URL", i)
		}
	}
}

// At a server that lists no checksums of parts, only what is missing is sent after a pause. The test
// answers the last request itself, because the gateway does have the checksums, and wants them.
func TestE4_S3WithoutChecksums(t *testing.T) {
	g := newGateway(t)
	f := newFront(t, g)
	var lists atomic.Int64
	var completed atomic.Pointer[string]
	f.fault = func(w http.ResponseWriter, r *http.Request) bool {
		if !isComplete(r) {
			return false
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		body := string(text)
		completed.Store(&body)
		_, _ = io.WriteString(w, "<CompleteMultipartUploadResult><Bucket>films</Bucket></CompleteMultipartUploadResult>")
		return true
	}
	f.proxy.ModifyResponse = func(answer *http.Response) error {
		if q := answer.Request.URL.Query(); answer.Request.Method != http.MethodGet || !q.Has("uploadId") {
			return nil
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		if sums := regexp.MustCompile("<ChecksumCRC32C>[^<]*</ChecksumCRC32C>"); sums.Match(text) {
			lists.Add(1)
			text = sums.ReplaceAll(text, nil)
		}
		answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		answer.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return nil
	}
	arrived, release := f.hold(t, "4")
	r := newRig(t, f.url, transfer.Config{})
	r.run()
	id := r.add("a", content(1, 4*part), transfer.Upload{ChunkSize: part, Verify: true})
	select {
	case <-arrived:
	case <-time.After(waiting):
		t.Fatal("part 4 is not sent")
	}
	if err := r.queue.Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r.becomes(id, queue.Paused)
	release()
	before := f.parts.Load()
	if err := r.queue.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r.wait(id, queue.Succeeded)
	if n := strings.Count(*completed.Load(), "<ETag>"); n != 4 {
		t.Errorf("the last request names %d parts; want 4: %s", n, *completed.Load())
	}
	if sent := f.parts.Load() - before; sent != 1 || lists.Load() == 0 {
		t.Errorf("%d parts were sent after the pause; want 1; %d lists had checksums", sent, lists.Load())
	}
}

// Wrong credentials, a missing bucket and wrong options are errors that say what to do, and no
// repetition is made.
func TestE4_S3Refuses(t *testing.T) {
	g := newGateway(t)
	none := t.TempDir()
	for _, c := range []struct {
		name, says string
		env        map[string]string
		u          transfer.Upload
	}{
		{
			name: "secret", says: "correct AWS_SECRET_ACCESS_KEY",
			env: map[string]string{"AWS_SECRET_ACCESS_KEY": "wrong"},
		},
		{name: "key", says: "correct AWS_ACCESS_KEY_ID", env: map[string]string{"AWS_ACCESS_KEY_ID": "wrong"}},
		{
			name: "none", says: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for the worker",
			env: map[string]string{
				"AWS_ACCESS_KEY_ID": "", "AWS_SHARED_CREDENTIALS_FILE": none + "/none", "AWS_CONFIG_FILE": none + "/none",
			},
		},
		{name: "bucket", says: "create the bucket", u: transfer.Upload{To: "s3://books/x"}},
		{name: "region", says: "region", u: transfer.Upload{Region: "eu-north-1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			f := newFront(t, g)
			var requests atomic.Int64
			f.fault = func(http.ResponseWriter, *http.Request) bool { requests.Add(1); return false }
			r := newRig(t, f.url, transfer.Config{})
			r.run()
			task := r.wait(r.add("a", content(1, 10), c.u), queue.Dead)
			if !strings.Contains(task.Error, c.says) {
				t.Errorf("the error is %q; want %q", task.Error, c.says)
			}
			if task.Failures != 1 || requests.Load() > 2 { // one lane begins, and one attempt is made
				t.Errorf("%d attempts made %d requests", task.Failures, requests.Load())
			}
			t.Log(task.Error)
		})
	}
}

// A part that is damaged on its way is refused by the server, and sent again.
func TestE4_S3DamagedPart(t *testing.T) {
	g := newGateway(t)
	f := newFront(t, g)
	var damaged atomic.Bool
	f.body = func(r *http.Request, body io.Reader) io.Reader {
		if r.URL.Query().Get("partNumber") != "2" || damaged.Swap(true) {
			return body
		}
		return readerFunc(func(p []byte) (int, error) {
			n, err := body.Read(p)
			for i := range p[:n] {
				p[i] ^= 1
			}
			return n, err
		})
	}
	r := newRig(t, f.url, transfer.Config{})
	r.run()
	want := content(1, 3*part)
	r.wait(r.add("a", want, transfer.Upload{ChunkSize: part}), queue.Succeeded)
	if got, _ := g.object(t, "in/a"); !bytes.Equal(got, want) {
		t.Error("the object differs from the file")
	}
	if !damaged.Load() || f.parts.Load() != 4 {
		t.Errorf("damaged: %t, %d parts were sent; want 4", damaged.Load(), f.parts.Load())
	}
}

// If the answer to the last request is lost, the object is recognized, and nothing is sent
// again: by the next request, and by the next attempt.
func TestE4_S3LostAnswer(t *testing.T) {
	for _, lost := range []int64{1, 5} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			g := newGateway(t)
			f := newFront(t, g)
			var completed, looks atomic.Int64
			f.fault = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodHead && looks.Add(1) == 1 { // for the object
					w.WriteHeader(http.StatusServiceUnavailable)
					return true
				}
				if !isComplete(r) {
					return false
				}
				switch n := completed.Add(1); {
				case n == 1:
					f.forward(&silent{header: make(http.Header)}, r)
					panic(http.ErrAbortHandler)
				case n <= lost:
					panic(http.ErrAbortHandler)
				}
				return false
			}
			r := newRig(t, f.url, transfer.Config{})
			r.run()
			want := content(1, 2*part)
			task := r.wait(r.add("a", want, transfer.Upload{ChunkSize: part}), queue.Succeeded)
			if got, _ := g.object(t, "in/a"); !bytes.Equal(got, want) {
				t.Error("the object differs from the file")
			}
			if f.parts.Load() != 2 || (task.Failures == 0) != (lost == 1) {
				t.Errorf("%d parts were sent, and %d attempts failed", f.parts.Load(), task.Failures)
			}
		})
	}
}

// silent drops an answer.
type silent struct{ header http.Header }

// Header is as http.ResponseWriter says.
func (s *silent) Header() http.Header { return s.header }

// Write drops the body.
func (s *silent) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader drops the status.
func (s *silent) WriteHeader(int) {}

// A file that is written to while it is sent fails the attempt. The next one sends the new
// content, and the parts of the old one are gone.
func TestE4_S3FileChanges(t *testing.T) {
	g := newGateway(t)
	f := newFront(t, g)
	path := filepath.Join(t.TempDir(), "a")
	want := content(1, 4*part)
	write(t, path, want)
	want[len(want)-1]++
	var once sync.Once
	f.body = func(r *http.Request, body io.Reader) io.Reader {
		if r.URL.Query().Get("partNumber") == "3" {
			once.Do(func() { // in one step: the next attempt must not find another change
				if err := change(path, want[len(want)-1:], int64(len(want)-1)); err != nil {
					t.Error(err)
				}
			})
		}
		return body
	}
	r := newRig(t, f.url, transfer.Config{})
	r.run()
	task := r.wait(r.addUpload(transfer.Upload{Path: path, ChunkSize: part}), queue.Succeeded)
	if got, _ := g.object(t, "in/a"); !bytes.Equal(got, want) {
		t.Error("the object differs from the file")
	}
	if task.Failures != 1 {
		t.Errorf("%d attempts failed; want 1", task.Failures)
	}
	if n := g.uploads(t); n != 0 {
		t.Errorf("%d unfinished uploads are left", n)
	}
}

// change writes into a file.
func change(path string, b []byte, at int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, at)
	return errors.Join(err, f.Close())
}

// A cancel of a running upload deletes its parts, and [transfer.Terminate] those of one that was
// paused before. No secret is in the store.
func TestE2_S3Cancel(t *testing.T) {
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprintf("paused %t", paused), func(t *testing.T) {
			g := newGateway(t)
			f := newFront(t, g)
			arrived, release := f.hold(t, "3")
			r := newRig(t, f.url, transfer.Config{})
			r.run()
			id := r.add("a", content(1, 4*part), transfer.Upload{ChunkSize: part})
			select {
			case <-arrived:
			case <-time.After(waiting):
				t.Fatal("part 3 is not sent")
			}
			if paused {
				if err := r.queue.Pause(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				r.becomes(id, queue.Paused)
				if n := g.uploads(t); n != 1 {
					t.Errorf("%d unfinished uploads while it is paused; want 1", n)
				}
			}
			if err := r.queue.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			release()
			task := r.wait(id, queue.Cancelled)
			for _, text := range [][]byte{task.Payload, task.Checkpoint} {
				if bytes.Contains(text, []byte(s3gateway.Secret)) || bytes.Contains(text, []byte(s3gateway.Key)) {
					t.Errorf("the store has credentials: %s", text)
				}
			}
			if paused {
				if err := transfer.Terminate(t.Context(), task, r.cfg); err != nil {
					t.Fatal(err)
				}
			}
			if n := g.uploads(t); n != 0 {
				t.Errorf("%d unfinished uploads are left", n)
			}
		})
	}
}

// A part at the server that is not of the file is sent again, and the others are not: here another
// client has replaced it while the upload was paused.
func TestE4_S3ForeignPart(t *testing.T) {
	g := newGateway(t)
	f := newFront(t, g)
	arrived, release := f.hold(t, "4")
	r := newRig(t, f.url, transfer.Config{})
	r.run()
	want := content(1, 4*part)
	id := r.add("a", want, transfer.Upload{ChunkSize: part, Verify: true})
	select {
	case <-arrived:
	case <-time.After(waiting):
		t.Fatal("part 4 is not sent")
	}
	if err := r.queue.Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r.becomes(id, queue.Paused)
	release()
	list, err := g.client.ListMultipartUploads(t.Context(), bucket, "", "", "", "", 1000)
	if err != nil || len(list.Uploads) != 1 {
		t.Fatalf("unfinished uploads: %+v, %v", list.Uploads, err)
	}
	other := content(9, part)
	sum := crc32.Checksum(other, crc32.MakeTable(crc32.Castagnoli))
	_, err = g.client.PutObjectPart(t.Context(), bucket, "in/a", list.Uploads[0].UploadID, 3, bytes.NewReader(other), part,
		minio.PutObjectPartOptions{CustomHeader: http.Header{
			"X-Amz-Checksum-Crc32c": {base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))},
		}})
	if err != nil {
		t.Fatal(err)
	}
	before := f.parts.Load()
	if err := r.queue.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	r.wait(id, queue.Succeeded)
	if got, _ := g.object(t, "in/a"); !bytes.Equal(got, want) {
		t.Error("the object differs from the file")
	}
	if sent := f.parts.Load() - before; sent != 2 {
		t.Errorf("%d parts were sent after the pause; want 2", sent)
	}
}

// becomes waits until a task is in a state.
func (r *rig) becomes(id queue.ID, state queue.State) {
	r.t.Helper()
	for late := time.After(waiting); ; {
		task, err := r.queue.Get(r.t.Context(), id)
		if err != nil {
			r.t.Fatal(err)
		}
		if task.State == state {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-late:
			r.t.Fatalf("the upload is %s; want %s", task.State, state)
		}
	}
}
