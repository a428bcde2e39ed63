package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/cmd/stint/internal/upload"
	"github.com/stintgo/stint/internal/peer"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/transfer"
	"github.com/stintgo/stint/transfer/receiver"
)

// Only a connection that broke or could not be made says that the server has ended: after any
// other error, another server would give the same answer again and again.
func TestOnlyBrokenConnectionsMeanThatTheServerHasEnded(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "unix", Err: syscall.ECONNREFUSED}
	foreign := &peer.ForeignError{UID: 1, Self: 2}
	for _, test := range []struct {
		err  error
		gone bool
	}{
		{refused, true},
		{fmt.Errorf("call: %w", refused), true},
		{io.EOF, true},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true},
		{&net.OpError{Op: "dial", Net: "unix", Err: foreign}, false},
		{errors.Join(refused, foreign), false},
		{queue.ErrInvalid, false},
		{queue.ErrFull, false},
		{context.DeadlineExceeded, false},
		{errors.New("an upload was removed while it was followed"), false},
	} {
		if got := upload.IsServerGone(test.err); got != test.gone {
			t.Errorf("%v: gone is %t", test.err, got)
		}
	}
}

// endsAt is a context that ends when it has been looked at a number of times.
type endsAt struct {
	context.Context //nolint:containedctx // it is a context itself
	looks           atomic.Int64
	end             context.CancelFunc
}

func newEndsAt(looks int) *endsAt {
	c := new(endsAt)
	c.Context, c.end = context.WithCancel(context.Background())
	c.looks.Store(int64(looks))
	return c
}

func (c *endsAt) look() {
	if c.looks.Add(-1) <= 0 {
		c.end()
	}
}

func (c *endsAt) Err() error {
	c.look()
	return c.Context.Err()
}

func (c *endsAt) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

// configIn returns the configuration of a Run that serves a directory by itself.
func configIn(t *testing.T, dir string) upload.Config {
	t.Helper()
	return upload.Config{
		Serve: serve.Config{
			Dir: filepath.Join(dir, "tasks"), Jobs: 1, Queues: []string{queue.DefaultQueue}, Grace: 1, Patience: 1,
			Logger: slog.New(slog.DiscardHandler), Transfer: transfer.Config{Logger: slog.New(slog.DiscardHandler)},
		},
		Remote:  remote.Config{Timeout: time.Minute},
		Options: queue.Options{MaxAttempts: 1},
		Show:    upload.Notes{W: t.Output()},
	}
}

// A Run that is asked to end, at whatever step, has no error, and says that its uploads are left.
func TestE2_RunEndsAtAnyStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	cfg := configIn(t, dir)
	cfg.Uploads = []transfer.Upload{{Path: file, To: silent.URL}}
	for looks := range 12 {
		ctx := newEndsAt(looks)
		sum, err := upload.Run(ctx, t.Context(), cfg)
		ctx.end()
		if want := (upload.Sum{Left: 1}); err != nil || sum != want {
			t.Errorf("after %d looks at its context: %+v, %v", looks, sum, err)
		}
	}
}

// stuck is an input that does not come; what asks for it is sent a first and a second signal.
type stuck struct {
	signals [2]context.CancelFunc
	come    chan struct{}
}

func (s *stuck) Read([]byte) (int, error) {
	for _, signal := range s.signals {
		signal()
	}
	<-s.come
	return 0, io.EOF
}

// A Run that is to end at once does not wait for a read of its input.
func TestE2_RunEndsAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inbox, err := receiver.Open(filepath.Join(dir, "inbox"), receiver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(inbox)
	defer server.Close()
	ctx, soon := context.WithCancel(t.Context())
	force, now := context.WithCancel(t.Context())
	in := &stuck{[2]context.CancelFunc{soon, now}, make(chan struct{})}
	defer close(in.come)
	cfg := configIn(t, dir)
	cfg.Own, cfg.Serve.Transfer.Input, cfg.Serve.Transfer.InputName = true, in, "this"
	cfg.Uploads = []transfer.Upload{{Path: transfer.Input, InputName: "this", Name: "in", To: server.URL + "/files/"}}
	if _, err := upload.Run(ctx, force, cfg); !errors.Is(err, serve.ErrForced) {
		t.Errorf("it ends with %v", err)
	}
}

// The process that sends uploads has its queue remember very many of them, so that the same command skips
// them all.
func TestE4_FinishedUploadsAreRemembered(t *testing.T) {
	t.Parallel()
	cfg := configIn(t, t.TempDir())
	if _, err := upload.Run(t.Context(), t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	store, err := filestore.Open(filepath.Join(cfg.Serve.Dir, "store"), filestore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	set, err := store.Settings(t.Context())
	if n := set[queue.DefaultQueue].InForce.Keep.Count; err != nil || n < 1_000_000 {
		t.Errorf("it remembers %d, %v", n, err)
	}
	own := queue.Change{Set: queue.Settings{Keep: queue.Retention{Age: time.Hour}}}
	if err := store.Configure(t.Context(), time.Now(), queue.DefaultQueue, own); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := upload.Run(t.Context(), t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if store, err = filestore.Open(filepath.Join(cfg.Serve.Dir, "store"), filestore.Config{}); err != nil {
		t.Fatal(err)
	}
	set, err = store.Settings(t.Context())
	if keep := set[queue.DefaultQueue].InForce.Keep; err != nil || keep != own.Set.Keep {
		t.Errorf("it remembers %+v, %v; that had been set to %+v", keep, err, own.Set.Keep)
	}
}
