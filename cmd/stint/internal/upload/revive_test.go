package upload_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/upload"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/transfer"
)

// shared is a store that another process uses, too: it retries tasks just before this one does, and a worker begins
// with them. The first look at unfinished tasks calls seen.
type shared struct {
	queue.Store
	tb   testing.TB
	seen func()
}

func (s *shared) Command(ctx context.Context, now time.Time, c queue.Command) (int, error) {
	if c.Do == queue.OrderRetry {
		if n, err := s.Store.Command(ctx, now, c); err != nil || n != 1 {
			s.tb.Errorf("the other process retries %d tasks: %v", n, err)
		}
		claimed, err := s.Claim(ctx, now, queue.Claim{
			Queue: queue.DefaultQueue, Kinds: []string{string(transfer.Kind)}, Max: 1,
			Worker: "worker", Lease: time.Hour,
		})
		if err != nil || len(claimed.Tasks) != 1 {
			s.tb.Errorf("the worker gets %d tasks: %v", len(claimed.Tasks), err)
		}
	}
	return s.Store.Command(ctx, now, c)
}

func (s *shared) Find(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	if len(f.States) > 0 {
		s.seen()
	}
	return s.Store.Find(ctx, f, p)
}

// Two calls with the same files and directory at once: both follow a failed upload that the other one has retried.
func TestE4_RetriedByAnotherCall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	store := &shared{Store: memstore.New(memstore.Config{}), tb: t}
	cfg := upload.Config{
		Uploads: []transfer.Upload{{Path: file, To: "http://127.0.0.1/files/"}}, Show: upload.Notes{W: t.Output()},
	}
	follow := func() {
		t.Helper()
		ctx, end := context.WithCancel(t.Context())
		defer end()
		store.seen = end
		sum, err := upload.Follow(ctx, &cfg, store)
		if want := (upload.Sum{Left: 1}); err != nil || sum != want {
			t.Errorf("%+v, %v; want %+v", sum, err, want)
		}
	}
	follow()
	all := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{Kind: string(transfer.Kind)}}
	if n, err := store.Store.Command(t.Context(), time.Now(), all); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	follow()
}
