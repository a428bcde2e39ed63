package receiver_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint/transfer/receiver"
)

// TestPlain_WholeWithoutAName: a whole file that could not get its name is removed, because its client sends
// it again. It does not come back with the next Open.
func TestPlain_WholeWithoutAName(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	s := open(t, failing(receiver.Config{}, "rename", &fails))
	s.want(s.do("PUT", "/files/a", strings.NewReader("abc")), 500)
	s.clean()
	fails.Store(false)
	s.want(s.do("PUT", "/files/a", strings.NewReader("abc")), 201)
	s.Close()
	s = openIn(t, s.dir, receiver.Config{})
	s.names("a")
	s.clean()
}

// TestUnpublishedUploadEnds: an upload that is complete and could not get its name can be cancelled, and
// expires.
func TestUnpublishedUploadEnds(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	for name, end := range map[string]func(s *site, url string){
		"cancel":       func(s *site, url string) { s.want(s.tus("DELETE", url, nil), 204) },
		"expire":       func(s *site, _ string) { s.Sweep(far()) },
		"cancel plain": func(s *site, _ string) { s.want(s.do("DELETE", "/files/b/", nil), 204) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, failing(receiver.Config{}, "rename", &fails))
			url := ""
			if name == "cancel plain" {
				s.want(s.do("PUT", "/files/b/0?size=3", strings.NewReader("abc")), 201)
				s.want(s.do("POST", "/files/b/merge", nil), 500)
			} else {
				url = s.create(3, "Upload-Metadata", filename("a"))
				s.want(s.patch(url, 0, []byte("abc")), 500)
			}
			end(s, url)
			s.clean()
			s.names()
			s.Close()
			openIn(t, s.dir, receiver.Config{}).names()
		})
	}
}

// TestE4_PlainPutLeavesNothing: nothing is left of a whole file by PUT that a kill has cut: its client sends it again,
// and no one knows its ID.
func TestE4_PlainPutLeavesNothing(t *testing.T) {
	data := content(65, 3<<20)
	killed := filepath.Join(t.TempDir(), "uploads")
	dir := filepath.Join(t.TempDir(), "uploads")
	kill := sync.OnceValue(func() error { return os.CopyFS(killed, os.DirFS(dir)) })
	s := openIn(t, dir, receiver.WithFault(receiver.Config{}, func(op string, n int) (int, error) {
		if op == "write" && n > 1<<10 { // a body is under way
			return 0, kill()
		}
		return 0, nil
	}))
	s.want(s.do("PUT", "/files/a", bytes.NewReader(data)), 201)
	s = openIn(t, killed, receiver.Config{KeyQuota: int64(len(data))})
	s.clean()
	s.want(s.do("PUT", "/files/a", bytes.NewReader(data)), 201)
	s.names("a")
}

// TestE4_CancelOfUnpublished: Finished is not called for an upload that could not get its name and was cancelled, if a
// kill comes between the two removals of the cancellation.
func TestE4_CancelOfUnpublished(t *testing.T) {
	var broken atomic.Bool
	removed := 0
	cfg := receiver.WithFault(receiver.Config{}, func(op string, _ int) (int, error) {
		if !broken.Load() {
			return 0, nil
		}
		if op == "remove" {
			removed++
		}
		if op == "rename" || op == "remove" && removed > 1 {
			return 0, errors.New("broken")
		}
		return 0, nil
	})
	s := open(t, cfg)
	url := s.create(4, "Upload-Metadata", filename("a"))
	broken.Store(true)
	s.want(s.patch(url, 0, []byte("four")), 500)
	s.want(s.tus("DELETE", url, nil), 500)
	s.Close()
	s = openIn(t, s.dir, receiver.Config{Finished: func(_ context.Context, u receiver.Upload) error {
		t.Errorf("Finished was called for %s", u.Path)
		return nil
	}})
	s.want(s.tus("HEAD", url, nil), 404)
	s.clean()
}

// TestQuota_RemovalThatFails: what could not be removed counts for the quota until the sweeper has removed it.
func TestQuota_RemovalThatFails(t *testing.T) {
	var broken atomic.Bool
	s := open(t, failing(receiver.Config{Quota: 1000}, "remove", &broken))
	url := s.create(1000)
	broken.Store(true)
	s.want(s.tus("DELETE", url, nil), 500)
	s.want(s.tus("DELETE", url, nil), 404)
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "1000"), 507)
	s.Sweep(time.Now())
	broken.Store(false)
	s.Sweep(time.Now())
	s.clean()
	s.create(1000)
}
