package receiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/transfer/receiver"
)

// cutBody returns a body whose connection breaks after n bytes.
func cutBody(data []byte, n int) io.Reader {
	return io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(errors.New("the connection is broken")))
}

// TestPlain_RacesOfChunks: requests for the same chunks, of which some break off and some cancel, merge or
// list, get no answer that blames the server, and a chunk that is sent as a whole is never unknown.
func TestPlain_RacesOfChunks(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(70, 3000)
	const chunk = 1000
	seed := seeded.Seed(t)
	do := func(ctx context.Context, method, path string, body io.Reader, length int) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(ctx, method, path, body)
		req.ContentLength = int64(length)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		return w
	}
	for round := range 60 {
		var all sync.WaitGroup
		for i := range 6 {
			rnd := rand.New(rand.NewPCG(seed, uint64(round*100+i)))
			all.Go(func() {
				for range 10 {
					at := rnd.IntN(3) * chunk
					path := fmt.Sprintf("/files/a/%d?size=%d", at, len(data))
					part := data[at : at+chunk]
					ctx, cancel := context.WithCancel(t.Context())
					allowed := []int{200, 201, 409}
					var w *httptest.ResponseRecorder
					switch rnd.IntN(8) {
					case 0:
						w, allowed = do(ctx, "PUT", path, cutBody(part, rnd.IntN(chunk)), chunk), []int{200, 400, 409}
					case 1:
						cancel()
						w, allowed = do(ctx, "PUT", path, bytes.NewReader(part), chunk), []int{200, 201, 400, 409}
					case 2:
						if i > 0 {
							break
						}
						w, allowed = do(ctx, "POST", "/files/a/merge", http.NoBody, 0), []int{201, 404, 409}
					default:
						w = do(ctx, "PUT", path, bytes.NewReader(part), chunk)
					}
					cancel()
					if w != nil && !slices.Contains(allowed, w.Code) {
						t.Errorf("round %d: status %d: %s", round, w.Code, w.Body)
					}
				}
			})
		}
		all.Wait()
		// What has not arrived can be sent in other chunks.
		var list struct{ Received [][2]int }
		if w := do(t.Context(), "GET", "/files/a/", nil, 0); w.Code == 200 {
			if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
				t.Fatal(err)
			}
		}
		for at := 0; at < len(data); at += chunk {
			if slices.ContainsFunc(list.Received, func(r [2]int) bool { return r[0] <= at && at < r[1] }) {
				continue
			}
			path := fmt.Sprintf("/files/a/%d?size=%d", at+1, len(data))
			if w := do(t.Context(), "PUT", path, bytes.NewReader(data[at+1:at+chunk]), chunk-1); w.Code != 201 {
				t.Errorf("round %d: a chunk in place of one that has not arrived: status %d: %s", round, w.Code, w.Body)
			}
		}
		if code := do(t.Context(), "DELETE", "/files/a/", http.NoBody, 0).Code; code != 204 && code != 404 {
			t.Fatalf("cancel: status %d", code)
		}
		s.clean()
	}
}

// TestPlain_NoRequestHoldsAChunk: a request takes a chunk over, and ends before it has got it. Then no request is
// going to send the chunk, and others may overlap it.
func TestPlain_NoRequestHoldsAChunk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	synctest.Test(t, func(t *testing.T) {
		release, reached := make(chan struct{}), make(chan struct{})
		once := sync.OnceFunc(func() { close(reached) })
		r, err := receiver.Open(dir, receiver.WithFault(receiver.Config{}, func(op string, bytes int) (int, error) {
			if op == "write" && bytes == 100 {
				once()
				<-release
			}
			return 0, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		put := func(ctx context.Context, at, n int, body io.Reader) int {
			req := httptest.NewRequestWithContext(ctx, "PUT", fmt.Sprintf("/files/a/%d?size=1000", at), body)
			req.ContentLength = int64(n)
			w := httptest.NewRecorder()
			r.ServeHTTP(w, req)
			return w.Code
		}
		first, second := make(chan int), make(chan int)
		go func() { first <- put(t.Context(), 0, 200, cutBody(make([]byte, 100), 100)) }()
		<-reached
		ctx, cancel := context.WithCancel(t.Context())
		go func() { second <- put(ctx, 0, 200, bytes.NewReader(make([]byte, 200))) }()
		synctest.Wait()
		cancel()
		if code := <-second; code != 400 {
			t.Errorf("the request that was cancelled ended with %d", code)
		}
		close(release)
		if code := <-first; code != 409 {
			t.Errorf("the request that was taken over ended with %d", code)
		}
		if code := put(t.Context(), 1, 150, bytes.NewReader(make([]byte, 150))); code != 201 {
			t.Errorf("a chunk that overlaps one that no request sends was answered %d", code)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}
