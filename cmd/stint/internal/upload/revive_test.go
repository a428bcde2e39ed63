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

// forgetful is a store that forgets a finished upload between its receipt and the next call.
type forgetful struct {
	queue.Store
	tb        testing.TB
	forget    bool
	submitted int
	end       context.CancelFunc
}

func (s *forgetful) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	s.submitted++
	return s.Store.Submit(ctx, now, tasks)
}

func (s *forgetful) Find(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	if s.forget {
		s.forget = false
		all := queue.Command{Do: queue.OrderForget, Filter: queue.Filter{Kind: string(transfer.Kind)}}
		if n, err := s.Command(ctx, time.Now(), all); err != nil || n != 1 {
			s.tb.Errorf("%d tasks are forgotten: %v", n, err)
		}
	}
	if len(f.States) > 0 {
		s.end()
	}
	return s.Store.Find(ctx, f, p)
}

// An upload that was known when it was added, and is forgotten before it is read, is added anew.
func TestE4_UploadForgottenSinceItsReceipt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	store := &forgetful{Store: memstore.New(memstore.Config{}), tb: t}
	cfg := upload.Config{
		Uploads: []transfer.Upload{{Path: file, To: "http://127.0.0.1/files/"}}, Show: upload.Notes{W: t.Output()},
	}
	follow := func(submitted int) {
		t.Helper()
		ctx, end := context.WithCancel(t.Context())
		defer end()
		store.end, store.submitted = end, 0
		sum, err := upload.Follow(ctx, &cfg, store)
		if want := (upload.Sum{Left: 1}); err != nil || sum != want || store.submitted != submitted {
			t.Errorf("%d submissions, %+v, %v; want %d, %+v", store.submitted, sum, err, submitted, want)
		}
	}
	follow(1)
	all := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{Kind: string(transfer.Kind)}}
	if n, err := store.Command(t.Context(), time.Now(), all); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	store.forget = true
	follow(2)
}
