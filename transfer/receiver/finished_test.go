package receiver_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/transfer/receiver"
)

// TestHangingFinishedStopsNoExpiry: uploads expire while Finished hangs for a file.
func TestHangingFinishedStopsNoExpiry(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	var hangs atomic.Bool
	s := openIn(t, dir, receiver.Config{Finished: func(context.Context, receiver.Upload) error {
		return errors.New("not now")
	}})
	url := s.create(4, "Upload-Metadata", filename("a"))
	s.want(s.patch(url, 0, []byte("four")), 500)
	s.Close()
	synctest.Test(t, func(t *testing.T) {
		r, err := receiver.Open(dir, receiver.Config{Finished: func(ctx context.Context, _ receiver.Upload) error {
			hangs.Store(true)
			<-ctx.Done()
			return ctx.Err()
		}})
		if err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequestWithContext(t.Context(), "POST", "/files/", nil)
		req.Header.Set("Tus-Resumable", "1.0.0")
		req.Header.Set("Upload-Length", "1000")
		r.ServeHTTP(httptest.NewRecorder(), req)
		if r.Reserved() != 1000 {
			t.Fatalf("%d bytes are reserved, want 1000", r.Reserved())
		}
		time.Sleep(1000 * time.Hour)
		synctest.Wait()
		if !hangs.Load() || r.Reserved() != 0 {
			t.Errorf("Finished hangs: %t; %d bytes are reserved", hangs.Load(), r.Reserved())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestPlain_PutWhileFinishedFails: a whole file by PUT that has its name is accepted although Finished fails: its
// client would send it again, and make another file.
func TestPlain_PutWhileFinishedFails(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	var calls atomic.Int64
	s := open(t, receiver.Config{Finished: func(context.Context, receiver.Upload) error {
		if fails.Load() {
			return errors.New("not now")
		}
		calls.Add(1)
		return nil
	}})
	url := s.want(s.do("PUT", "/files/a", strings.NewReader("abc")), 202).Header.Get("Location")
	s.want(s.do("GET", url, nil), 200)
	fails.Store(false)
	s.Sweep(time.Now())
	s.names("a")
	if calls.Load() != 1 {
		t.Errorf("Finished was called %d times", calls.Load())
	}
}

// TestDraft_HeadWhileFinishedFails: HEAD of the draft calls Finished again, as that of tus does, and does not say that
// the upload is complete before.
func TestDraft_HeadWhileFinishedFails(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	s := open(t, receiver.Config{Finished: func(context.Context, receiver.Upload) error {
		if fails.Load() {
			return errors.New("not now")
		}
		return nil
	}})
	a := s.want(s.draft("8", "POST", s.url, strings.NewReader("four"), "Upload-Complete", "?1"), 500)
	url := a.Header.Get("Location")
	s.want(s.draft("8", "HEAD", url, nil), 500)
	fails.Store(false)
	s.want(s.draft("8", "HEAD", url, nil), 204, "Upload-Complete", "?1")
}
