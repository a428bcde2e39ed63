package receiver_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint/transfer/receiver"
)

// TestE4_ErrorAfterTheRename: a file that has its name, and whose directory could not be
// synced, is finished by the next request, by the sweeper or by Open, under the same name.
// Finished is not called before the name is durable.
func TestE4_ErrorAfterTheRename(t *testing.T) {
	for _, by := range []string{"request", "sweep", "open"} {
		t.Run(by, func(t *testing.T) {
			var renamed, broken atomic.Bool
			broken.Store(true)
			var calls []string
			cfg := receiver.WithFault(receiver.Config{Finished: func(_ context.Context, u receiver.Upload) error {
				if broken.Load() {
					t.Error("Finished was called before the name was durable")
				}
				calls = append(calls, filepath.Base(u.Path))
				return nil
			}}, func(op string, _ int) (int, error) {
				if op == "rename" {
					renamed.Store(true)
				}
				if op == "sync" && renamed.Load() && broken.Load() {
					return 0, errors.New("broken")
				}
				return 0, nil
			})
			s := open(t, cfg)
			url := s.create(3, "Upload-Metadata", filename("a"))
			s.want(s.patch(url, 0, []byte("abc")), 500)
			s.want(s.patch(url, 3, nil), 500)
			if n := s.Reserved(); n != 0 {
				t.Errorf("the file takes %d bytes of the quota", n)
			}
			if by == "open" {
				s.Close()
			}
			broken.Store(false)
			switch by {
			case "sweep":
				s.Sweep(far())
			case "open":
				s = openIn(t, s.dir, cfg)
			}
			s.want(s.patch(url, 3, nil), 204)
			s.names("a")
			s.file("a", []byte("abc"))
			s.Close()
			if !slices.Equal(calls, []string{"a"}) {
				t.Errorf("Finished was called for %q", calls)
			}
		})
	}
}
