package receiver_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stintgo/stint/transfer/receiver"
)

// fullFor returns a configuration whose disk is full for some operations while on is true.
func fullFor(on *atomic.Bool, ops ...string) receiver.Config {
	return receiver.WithFault(receiver.Config{}, func(is string, _ int) (int, error) {
		for _, op := range ops {
			if is == op && on.Load() {
				return 0, syscall.ENOSPC
			}
		}
		return 0, nil
	})
}

// groupOf returns the metadata of the parts of a group in one file.
func groupOf(total int) func(offset, length int) string {
	return func(offset, _ int) string {
		return "part-of " + b64(fmt.Sprintf("group-0123456789abcdef %d %d", offset, total))
	}
}

// TestTus_ConcatenationCancelled: a concatenation that a full disk has stopped is given up with the DELETE of its first
// part, and then the other parts can be cancelled. The parts of a group are in place: only the last steps can fail.
func TestTus_ConcatenationCancelled(t *testing.T) {
	data := content(66, 300)
	for _, placed := range []bool{false, true} {
		var full atomic.Bool
		s := openIn(t, t.TempDir(), fullFor(&full, "copy", "rename"))
		var meta func(offset, length int) string
		if placed {
			meta = groupOf(len(data))
		}
		urls := s.parts(data, 3, meta)
		full.Store(true)
		final := "final;" + urls[0] + " " + urls[1] + " " + urls[2]
		s.want(s.tus("POST", s.url, nil, "Upload-Concat", final), 507)
		if !placed {
			s.want(s.tus("DELETE", urls[1], nil), 409)
		}
		s.want(s.tus("DELETE", urls[0], nil), 204)
		if !placed {
			s.want(s.tus("DELETE", urls[1], nil), 204)
			s.want(s.tus("DELETE", urls[2], nil), 204)
		}
		s.clean()
		s.want(s.tus("POST", s.url, nil, "Upload-Concat", final), 404)
	}
}

// TestTus_PartCancelledWhileConcatenationBegins: a part is cancelled or taken by the concatenation, never both: then
// nothing could cancel the rest.
func TestTus_PartCancelledWhileConcatenationBegins(t *testing.T) {
	s := open(t, receiver.Config{})
	for range 200 {
		urls := s.parts(content(67, 20), 2, nil)
		var all sync.WaitGroup
		var cancelled, joined answer
		all.Go(func() { joined = s.tus("POST", s.url, nil, "Upload-Concat", "final;"+urls[0]+" "+urls[1]) })
		all.Go(func() { cancelled = s.tus("DELETE", urls[1], nil) })
		all.Wait()
		if joined.StatusCode == http.StatusCreated {
			continue
		}
		if cancelled.StatusCode != http.StatusNoContent {
			t.Fatalf("the concatenation was answered %d, the cancellation %d", joined.StatusCode, cancelled.StatusCode)
		}
		s.want(s.tus("HEAD", urls[0], nil), 200)
		s.want(s.tus("POST", s.url, nil, "Upload-Concat", "final;"+urls[0]), 201)
	}
	s.clean()
}

// TestTus_PartCancelledOnAFullDisk: the DELETE of a part, which makes room, does not need any.
func TestTus_PartCancelledOnAFullDisk(t *testing.T) {
	var full atomic.Bool
	s := openIn(t, t.TempDir(), fullFor(&full, "write"))
	urls := s.parts(content(68, 300), 3, groupOf(300))
	full.Store(true)
	s.want(s.tus("DELETE", urls[0], nil), 204)
	s.want(s.tus("HEAD", urls[0], nil), 404)
	full.Store(false)
	s.want(s.tus("DELETE", urls[1], nil), 204)
	s.Close()
	s = openIn(t, s.dir, receiver.Config{})
	s.want(s.tus("HEAD", urls[0], nil), 404)
	s.want(s.tus("HEAD", urls[1], nil), 404)
	s.want(s.tus("DELETE", urls[2], nil), 204)
	s.clean()
}
