package transfer_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/queue/queuetest"
	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/transfer"
)

// quick is a policy without noticeable delays.
var quick = retry.Policy{Attempts: 5, Base: time.Millisecond, Max: 2 * time.Millisecond}

// rig is a queue with the handler of uploads, and a server.
type rig struct {
	t      *testing.T
	server *tusServer
	store  queue.Store
	cfg    transfer.Config
	queue  *queue.Queue
	// changed receives when a task has changed its state, or a heartbeat has been sent.
	changed chan struct{}
}

func newRig(t *testing.T, cfg transfer.Config) *rig {
	t.Helper()
	if cfg.Retry == (retry.Policy{}) {
		cfg.Retry = quick
	}
	r := &rig{t: t, server: newTusServer(t), cfg: cfg, changed: make(chan struct{}, 1)}
	store := memstore.New(memstore.Config{})
	t.Cleanup(func() { store.Close() })
	r.store = queuetest.Faulty(store, func(_ context.Context, call string, do func() error) error {
		err := do()
		if call == "Heartbeat" {
			r.signal()
		}
		return err
	})
	r.restart()
	return r
}

// restart makes another queue on the same store, as a new process would. The caller has
// stopped the present one.
func (r *rig) restart() {
	r.queue = queue.New(r.store, queue.Config{
		Retry: quick, Poll: 10 * time.Millisecond, Grace: time.Millisecond, WaitDelay: time.Minute,
		OnEvent: func(context.Context, queue.Event) { r.signal() },
	})
	transfer.Handle(r.queue, r.cfg)
}

func (r *rig) signal() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// until waits until a task fulfils a condition.
func (r *rig) until(id queue.ID, what string, is func(queue.Task) bool) queue.Task {
	r.t.Helper()
	late := time.After(time.Minute)
	for {
		task, err := r.queue.Get(r.t.Context(), id)
		if err != nil {
			r.t.Fatal(err)
		}
		if is(task) {
			return task
		}
		select {
		case <-r.changed:
		case <-late:
			r.t.Fatalf("the upload is %s (%s) and not %s", task.State, task.Error, what)
		}
	}
}

// becomes waits until a task is in a state.
func (r *rig) becomes(id queue.ID, state queue.State) queue.Task {
	r.t.Helper()
	return r.until(id, state.String(), func(task queue.Task) bool { return task.State == state })
}

// run runs the queue on slots until the test ends or stop is called.
func (r *rig) run(slots int) (stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.queue.Run(ctx, stint.New(slots, stint.Config{})) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			r.t.Error(err)
		}
	}
	r.t.Cleanup(stop)
	return stop
}

// runs runs the queue on one slot, and returns id.
func (r *rig) runs(id queue.ID) queue.ID {
	r.t.Helper()
	r.run(1)
	return id
}

// add adds an upload of a file with a content.
func (r *rig) add(name string, content []byte, u transfer.Upload, o queue.Options) queue.ID {
	r.t.Helper()
	u.Path = filepath.Join(r.t.TempDir(), name)
	write(r.t, u.Path, content)
	return r.addUpload(u, o)
}

func (r *rig) addUpload(u transfer.Upload, o queue.Options) queue.ID {
	r.t.Helper()
	if u.To == "" {
		u.To = r.server.url()
	}
	receipts, err := transfer.Add(r.t.Context(), r.queue, o, u)
	if err != nil {
		r.t.Fatal(err)
	}
	return receipts[0].ID
}

// wait waits until an upload is finished, and checks its state.
func (r *rig) wait(id queue.ID, state queue.State) queue.Task {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.t.Context(), time.Minute)
	defer stop()
	task, err := r.queue.Wait(ctx, id)
	if err != nil || task.State != state {
		r.t.Fatalf("the upload is %s, error %v (%s); want %s; requests %q", task.State, err, task.Error, state,
			r.server.requests)
	}
	return task
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// content returns random bytes, the same for the same seed.
func content(seed uint64, n int) []byte {
	random := rand.NewChaCha8([32]byte{byte(seed)})
	all := make([]byte, n)
	random.Read(all) //nolint:errcheck // it never returns an error
	return all
}

const chunkSize = 64 << 10

func TestE4_FilesArriveInChunks(t *testing.T) {
	tests := []struct {
		name          string
		size          int
		upload        transfer.Upload
		extensions    string
		patches, made int // requests
	}{
		{name: "empty", patches: 1, made: 1}, // the request has the length
		{name: "empty, with its length", extensions: "creation", made: 1},
		{name: "one byte", size: 1, patches: 1, made: 1},
		{name: "one chunk", size: chunkSize, patches: 1, made: 1},
		{name: "one byte more", size: chunkSize + 1, patches: 2, made: 1},
		{name: "without extensions", size: 5 * chunkSize, extensions: "creation", patches: 5, made: 1},
		{name: "verified", size: 5*chunkSize + 7, upload: transfer.Upload{Verify: true}, patches: 6, made: 1},
		{name: "lanes", size: 10*chunkSize + 5, upload: transfer.Upload{Lanes: 4}, patches: 11, made: 5},
		{
			name: "lanes of one chunk", size: 3 * chunkSize, upload: transfer.Upload{Lanes: 16, Verify: true},
			patches: 3, made: 4,
		},
		{
			name: "lanes without concatenation", size: 5 * chunkSize, upload: transfer.Upload{Lanes: 4},
			extensions: "creation,checksum", patches: 5, made: 1,
		},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, transfer.Config{})
			if test.extensions != "" {
				r.server.extensions = test.extensions
			}
			r.run(1)
			test.upload.ChunkSize = chunkSize
			want := content(uint64(i), test.size)
			id := r.add("a.bin", want, test.upload, queue.Options{})
			task := r.wait(id, queue.Succeeded)
			r.server.has(t, "a.bin", want)
			result, err := queue.Result[transfer.Result](task)
			if err != nil || result.Size != int64(test.size) || result.Sent != result.Size || result.Skipped != 0 ||
				r.server.at(result.URL) == nil {
				t.Errorf("the result is %+v, error %v", result, err)
			}
			if n := r.server.count(http.MethodPatch); n != test.patches {
				t.Errorf("%d PATCH requests; want %d", n, test.patches)
			}
			if n := r.server.count(http.MethodPost); n != test.made {
				t.Errorf("%d POST requests; want %d", n, test.made)
			}
			seen, err := transfer.Of(task)
			done := slices.Repeat([]transfer.ChunkState{transfer.ChunkDone}, min(test.patches, test.size))
			if err != nil || seen.Done != int64(test.size) || !slices.Equal(seen.Chunks, done) || seen.URL != result.URL {
				t.Errorf("the list says %+v, error %v", seen, err)
			}
		})
	}
}
