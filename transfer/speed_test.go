package transfer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/transfer"
)

// discard is a server that takes uploads and PUT requests, and keeps nothing.
func discard(b *testing.B, extensions string) *httptest.Server {
	b.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodOptions:
			w.Header().Set("Tus-Extension", extensions)
			w.Header().Set("Tus-Checksum-Algorithm", "sha256")
		case http.MethodPost:
			w.Header().Set("Location", "/files/1")
			w.WriteHeader(http.StatusCreated)
		default:
			n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{r.Body}, make([]byte, 256<<10))
			if err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			at, _ := strconv.ParseInt(r.Header.Get("Upload-Offset"), 10, 64) // 0 for PUT
			w.Header().Set("Upload-Offset", strconv.FormatInt(at+n, 10))
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	b.Cleanup(s.Close)
	return s
}

// The file of the benchmarks.
const speedSize = 256 << 20

func speedFile(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "file")
	if err := os.WriteFile(path, content(1, speedSize), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkPut sends a file as a bare client would: one request for each chunk.
func BenchmarkPut(b *testing.B) {
	path, server := speedFile(b), discard(b, "")
	b.SetBytes(speedSize)
	for b.Loop() {
		file, err := os.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		for at := int64(0); at < speedSize; at += transfer.DefaultChunkSize {
			body := io.NewSectionReader(file, at, transfer.DefaultChunkSize)
			request, err := http.NewRequestWithContext(b.Context(), http.MethodPut, server.URL+"/files/1", body)
			if err != nil {
				b.Fatal(err)
			}
			request.ContentLength = transfer.DefaultChunkSize
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				b.Fatal(err)
			}
			response.Body.Close()
		}
		file.Close()
	}
}

// BenchmarkUpload sends the same file as a task, from its submission to its end.
func BenchmarkUpload(b *testing.B) {
	for _, extensions := range []string{"creation", "creation,checksum"} {
		for _, lanes := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/%d", extensions, lanes), func(b *testing.B) {
				path, server := speedFile(b), discard(b, extensions+",concatenation")
				store := memstore.New(memstore.Config{})
				defer store.Close()
				q := queue.New(store, queue.Config{})
				transfer.Handle(q, transfer.Config{})
				ctx, stop := context.WithCancel(b.Context())
				ended := make(chan error)
				go func() { ended <- q.Run(ctx, stint.New(1, stint.Config{})) }()
				b.SetBytes(speedSize)
				for b.Loop() {
					receipts, err := transfer.Add(ctx, q, queue.Options{},
						transfer.Upload{Path: path, To: server.URL + "/files/", Lanes: lanes})
					if err != nil {
						b.Fatal(err)
					}
					task, err := q.Wait(ctx, receipts[0].ID)
					if err != nil || task.State != queue.Succeeded {
						b.Fatal(task.State, task.Error, err)
					}
				}
				stop()
				<-ended //nolint:errcheck // the end of ctx
			})
		}
	}
}
