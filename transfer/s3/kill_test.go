package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/transfer"
	"github.com/stintgo/stint/transfer/s3"
)

// workerDir is the environment variable that makes a process of this test binary a worker on
// the store in a directory.
const workerDir = "STINT_TEST_WORKER"

// workerInput is the environment variable that gives a worker an endless input.
const workerInput = "STINT_TEST_INPUT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(workerDir); dir != "" {
		if err := work(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work uploads what is in a store, until nothing is left. A dead upload is an error.
func work(dir string) error {
	store, err := filestore.Open(dir, filestore.Config{})
	if err != nil {
		return err
	}
	defer store.Close()
	q := queue.New(store, queue.Config{Retry: quick})
	cfg := transfer.Config{Retry: quick, S3: s3.Open}
	if os.Getenv(workerInput) != "" {
		cfg.Input = readerFunc(func(p []byte) (int, error) { return len(p), nil })
	}
	transfer.Handle(q, cfg)
	ctx, stop := context.WithTimeout(context.Background(), waiting)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx, stint.New(2, stint.Config{})) }()
	for task, err := range q.Find(ctx, queue.Filter{}) {
		if err != nil {
			return err
		}
		task, err := q.Wait(ctx, task.ID)
		if err != nil {
			return err
		}
		if task.State == queue.Dead {
			return fmt.Errorf("the upload is dead: %s", task.Error)
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// tripwire trips when parts of a number of bytes have passed, or a number of requests. Nothing
// passes after that until it is set again, so that a worker does not end before it is killed.
type tripwire struct {
	mu              sync.Mutex
	bytes, requests int64           // what is left
	tripped         chan struct{}   // closed then
	reset           chan struct{}   // closed by the next set
	held            map[string]bool // numbers of parts that must not be sent any more
}

// set makes the tripwire trip when sent more bytes or requests more requests have passed. The
// parts in held, which the server has, must not be sent again.
func (w *tripwire) set(sent, requests int64, held map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = held
	if w.reset != nil {
		close(w.reset)
	}
	w.bytes, w.requests, w.tripped, w.reset = sent, requests, make(chan struct{}), make(chan struct{})
}

// pass counts, and blocks if the wire has tripped.
func (w *tripwire) pass(sent, requests int64) {
	w.mu.Lock()
	w.bytes -= sent
	w.requests -= requests
	if w.bytes > 0 && w.requests > 0 {
		w.mu.Unlock()
		return
	}
	select {
	case <-w.tripped:
	default:
		close(w.tripped)
	}
	reset := w.reset
	w.mu.Unlock()
	<-reset
}

// attach counts the requests and bytes of a front.
func (w *tripwire) attach(t *testing.T, f *front) {
	t.Helper()
	w.set(math.MaxInt64, math.MaxInt64, nil)
	// Before the front is closed, which waits for requests.
	t.Cleanup(func() { w.set(math.MaxInt64, math.MaxInt64, nil) })
	f.fault = func(_ http.ResponseWriter, r *http.Request) bool {
		w.mu.Lock()
		if number := r.URL.Query().Get("partNumber"); w.held[number] {
			t.Errorf("part %s is sent again, and the server has it", number)
		}
		w.mu.Unlock()
		w.pass(0, 1)
		return false
	}
	f.body = func(_ *http.Request, body io.Reader) io.Reader {
		return readerFunc(func(p []byte) (int, error) {
			const step = 64 << 10
			n, err := body.Read(p[:min(step, len(p))])
			w.pass(int64(n), 0)
			return n, err
		})
	}
}

// A worker that is killed at 20 points for each number of lanes sends no part again that the server
// has, so no more than one of each lane. All kills share one multipart upload, and none is left.
func TestE4_S3KilledAtRandomPoints(t *testing.T) {
	const (
		size  = 30*part + 1
		kills = 20
	)
	for _, lanes := range []int{1, 3} {
		t.Run(fmt.Sprint(lanes), func(t *testing.T) {
			random := seeded.Rand(t)
			g := newGateway(t)
			f := newFront(t, g)
			wire := &tripwire{}
			wire.attach(t, f)
			dir, want := t.TempDir(), content(7, size)
			path, store := filepath.Join(dir, "a"), filepath.Join(dir, "store")
			write(t, path, want)
			addTo(t, store, transfer.Upload{
				Path: path, To: "s3://" + bucket, Endpoint: f.url, ChunkSize: part, Lanes: lanes, Verify: true,
			})
			var held map[string]bool
			for range kills {
				bytes, requests := 1+random.Int64N(size/kills), int64(size)
				if random.IntN(4) == 0 {
					requests = 1 + random.Int64N(6)
				}
				wire.set(bytes, requests, held)
				kill(t, startWorker(t, store), wire)
				all := g.parts(t)
				if len(all) > 1 {
					t.Fatalf("there are %d unfinished uploads; want 1 at most", len(all))
				}
				if len(all) > 0 {
					held = all[0]
				}
			}
			wire.set(math.MaxInt64, math.MaxInt64, held)
			select {
			case err := <-startWorker(t, store).done:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(waiting):
				t.Fatal("the last worker does not end")
			}
			if got, _ := g.object(t, "a"); !bytes.Equal(got, want) {
				t.Error("the object differs from the file")
			}
			if most := int64(size + kills*lanes*part); f.bytes.Load() > most {
				t.Errorf("the server received %d bytes; want %d at most", f.bytes.Load(), most)
			}
			if n := g.uploads(t); n != 0 {
				t.Errorf("%d unfinished uploads are left", n)
			}
			t.Logf("%d kills, %d bytes of %d sent again", kills, f.bytes.Load()-size, size)
		})
	}
}

// The input of a worker that was killed cannot be read again: the next worker deletes its parts.
func TestE2_S3InputOfKilledWorker(t *testing.T) {
	g := newGateway(t)
	f := newFront(t, g)
	wire := &tripwire{}
	wire.attach(t, f)
	store := filepath.Join(t.TempDir(), "store")
	addTo(t, store, transfer.Upload{
		Path: transfer.Input, Name: "endless", To: "s3://" + bucket, Endpoint: f.url, ChunkSize: part,
	})
	wire.set(2*part, math.MaxInt64, nil)
	t.Setenv(workerInput, "yes")
	kill(t, startWorker(t, store), wire)
	if n := g.uploads(t); n != 1 {
		t.Fatalf("there are %d unfinished uploads; want 1", n)
	}
	t.Setenv(workerInput, "")
	wire.set(math.MaxInt64, math.MaxInt64, nil)
	select {
	case err := <-startWorker(t, store).done:
		if err == nil {
			t.Error("an upload whose input is lost is not dead")
		}
	case <-time.After(waiting):
		t.Fatal("the second worker does not end")
	}
	if n := g.uploads(t); n != 0 {
		t.Errorf("%d unfinished uploads are left", n)
	}
}

// kill kills a worker when the wire trips.
func kill(t *testing.T, w worker, wire *tripwire) {
	t.Helper()
	select {
	case <-wire.tripped:
	case err := <-w.done:
		t.Fatalf("the worker ended with %v before it was killed", err)
	case <-time.After(waiting):
		wire.mu.Lock()
		defer wire.mu.Unlock()
		t.Fatalf("the worker has %d bytes and %d requests to send before it is killed", wire.bytes, wire.requests)
	}
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-w.done; err == nil {
		t.Fatal("the worker had ended before it was killed")
	}
}

// addTo adds an upload to a store that no process has open. Its worker may die often.
func addTo(t *testing.T, dir string, u transfer.Upload) {
	t.Helper()
	s, err := filestore.Open(dir, filestore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	q := queue.New(s, queue.Config{})
	if _, err := transfer.Add(t.Context(), q, queue.Options{MaxCrashes: 1000}, u); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// worker is another process.
type worker struct {
	cmd  *exec.Cmd
	done chan error // receives when it has ended
}

func startWorker(t *testing.T, dir string) worker {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), waiting)
	t.Cleanup(stop)
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), workerDir+"="+dir, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := worker{cmd: cmd, done: make(chan error, 1)}
	go func() { w.done <- cmd.Wait() }()
	return w
}
