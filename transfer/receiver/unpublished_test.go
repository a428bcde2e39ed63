package receiver_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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
