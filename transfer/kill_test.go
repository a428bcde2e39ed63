package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/transfer"
)

// workerDir is the environment variable that makes a process of this test binary a worker on
// the store in a directory.
const workerDir = "STINT_TEST_WORKER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(workerDir); dir != "" {
		if err := work(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(receiverDir); dir != "" {
		fmt.Fprintln(os.Stderr, serveReceiver(dir))
		os.Exit(1)
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
	transfer.Handle(q, transfer.Config{Retry: quick})
	ctx, stop := context.WithCancel(context.Background())
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

// tripwire signals when a server has received a number of bytes, or a number of requests.
type tripwire struct {
	bytes, requests atomic.Int64 // what is left; 0 and less is over
	tripped         chan struct{}
}

func (w *tripwire) set(bytes, requests int64) {
	select {
	case <-w.tripped:
	default:
	}
	w.bytes.Store(bytes)
	w.requests.Store(requests)
}

func (w *tripwire) pass(left *atomic.Int64, n int64) {
	if left.Add(-n) <= 0 {
		select {
		case w.tripped <- struct{}{}:
		default:
		}
	}
}

// fault is for tusServer.fault.
func (w *tripwire) fault(http.ResponseWriter, *http.Request) bool {
	w.pass(&w.requests, 1)
	return false
}

// content is for tusServer.content.
func (w *tripwire) content(_ *http.Request, body io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		const step = 4 << 10
		n, err := body.Read(p[:min(step, len(p))])
		w.pass(&w.bytes, int64(n))
		return n, err
	})
}

type readerFunc func(p []byte) (int, error)

// Read is as io.Reader says.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A worker that is killed at random points sends what is missing, and no more than one chunk
// of each lane again.
func TestE4_KilledAtRandomPoints(t *testing.T) {
	const (
		size  = 200 * chunkSize
		kills = 16 // of each upload
	)
	for _, test := range []struct {
		lanes      int
		extensions string
	}{{1, "creation"}, {3, allExtensions}} {
		t.Run(fmt.Sprint(test.lanes), func(t *testing.T) {
			random := seeded.Rand(t)
			server := newTusServer(t)
			server.extensions = test.extensions
			wire := &tripwire{tripped: make(chan struct{}, 1)}
			server.fault, server.content = wire.fault, wire.content
			dir, want := t.TempDir(), content(7, size)
			path, store := filepath.Join(dir, "a"), filepath.Join(dir, "store")
			write(t, path, want)
			addTo(t, store, transfer.Upload{Path: path, To: server.url(), ChunkSize: chunkSize, Lanes: test.lanes})
			for range kills {
				bytes, requests := random.Int64N(size/kills), int64(size)
				if random.IntN(4) == 0 {
					requests = 1 + random.Int64N(6)
				}
				wire.set(1+bytes, requests)
				ended := startWorker(t, store)
				select {
				case <-wire.tripped:
				case err := <-ended.done:
					t.Fatalf("the worker ended with %v before it was killed", err)
				}
				ended.kill(t)
			}
			wire.set(10*size, 10*size)
			if err := <-startWorker(t, store).done; err != nil {
				t.Fatal(err)
			}
			server.has(t, "a", want)
			if most := int64(size + kills*test.lanes*chunkSize); server.bytes() > most {
				t.Errorf("the server received %d bytes; want %d at most", server.bytes(), most)
			}
			t.Logf("%d kills, %d bytes of %d sent again, %d uploads created", kills, server.bytes()-size, size, server.created)
		})
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
	if _, err := transfer.Add(t.Context(), q, queue.Options{MaxCrashes: 1000, MaxAttempts: 1 << 20}, u); err != nil {
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
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
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
