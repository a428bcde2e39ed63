//go:build !race

package transfer_test

import (
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/transfer"
	"github.com/stintgo/stint/transfer/receiver"
)

// linkChunks is the size of a file that is sent over a slow link.
const linkChunks = 150

// Over a link with a round trip of 200 ms, of which one connection in linkCuts is cut,
// uploads finish. A cut costs one failed request, and no more than what the server has not
// recorded. The race detector breaks here: see docs/testing.md.
func TestE4_SlowLinkWithCuts(t *testing.T) {
	const files, size = 4, linkChunks * chunkSize
	for _, lanes := range []int{1, 4} {
		random := seeded.Rand(t)
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			n.delay, n.random, n.most = 100*time.Millisecond, random, chunkSize
			r, err := receiver.Open(filepath.Join(dir, "uploads"), receiver.Config{})
			if err != nil {
				t.Fatal(err)
			}
			var sent, failed atomic.Int64
			client := n.serve(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body := req.Body
				req.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
					got, err := body.Read(p)
					sent.Add(int64(got))
					return got, err
				}))
				r.ServeHTTP(w, req)
			}))
			cfg := transfer.Config{
				Client: client, Logger: slog.New(counting{&failed}),
				Retry: retry.Policy{Attempts: 5, Base: 100 * time.Millisecond, Max: time.Second},
			}
			uploads(t, cfg, files, func(q *queue.Queue) {
				for i := range files {
					path := filepath.Join(dir, strconv.Itoa(i))
					write(t, path, content(uint64(i), size))
					addUploads(t, q, queue.Options{},
						transfer.Upload{Path: path, To: "http://memory/files/", Lanes: lanes, ChunkSize: chunkSize, Verify: true})
				}
			})
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			cuts := n.cuts.Load()
			if cuts == 0 || failed.Load() > cuts {
				t.Errorf("%d connections were cut, and %d requests failed", cuts, failed.Load())
			}
			if most := files*size + cuts*chunkSize; sent.Load() > most {
				t.Errorf("the server received %d bytes, want %d at most", sent.Load(), most)
			}
			t.Logf("%d cuts, %d failed requests, %d bytes sent again", cuts, failed.Load(), sent.Load()-files*size)
		})
		var names []string
		for i := range files {
			names = append(names, strconv.Itoa(i))
			wantFile(t, filepath.Join(dir, "uploads", names[i]), content(uint64(i), size))
		}
		wantLeft(t, filepath.Join(dir, "uploads"), names...)
	}
}
