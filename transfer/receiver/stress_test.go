package receiver_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/transfer/receiver"
)

// TestManyWriters: clients that know nothing of each other write one upload, and take it
// over from each other all the time. It arrives right.
func TestManyWriters(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(50, 8<<20)
	url := s.create(len(data), "Upload-Metadata", filename("a"))
	seed := seeded.Seed(t)
	var all sync.WaitGroup
	for i := range 6 {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() {
			for {
				head := s.tus("HEAD", url, nil)
				at, err := strconv.Atoi(head.Header.Get("Upload-Offset"))
				if err != nil {
					t.Errorf("HEAD: status %d, %v", head.StatusCode, err)
					return
				}
				if at == len(data) {
					return
				}
				body := strings.NewReader(string(data[at:min(at+1+rnd.IntN(1<<20), len(data))]))
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch,
					strings.TrimSuffix(s.url, "/files/")+url, body)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Tus-Resumable", "1.0.0")
				req.Header.Set("Upload-Offset", fmt.Sprint(at))
				req.Header.Set("Content-Type", "application/offset+octet-stream")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					continue // it was taken over
				}
				resp.Body.Close()
				if code := resp.StatusCode; code != http.StatusNoContent && code != http.StatusConflict {
					t.Errorf("PATCH: status %d", code)
					return
				}
			}
		})
	}
	all.Wait()
	s.file("a", data)
	s.clean()
}

// TestLanesInParallel: the parts of a file arrive at once, in one file.
func TestLanesInParallel(t *testing.T) {
	s := open(t, receiver.Config{})
	const lanes, size = 8, 1 << 20
	data := content(51, lanes*size)
	urls := make([]string, lanes)
	var all sync.WaitGroup
	for i := range lanes {
		all.Go(func() {
			place := fmt.Sprintf("parallel-lanes-0123 %d %d", i*size, len(data))
			urls[i] = s.create(size, "Upload-Concat", "partial", "Upload-Metadata", "part-of "+b64(place))
			for at := 0; at < size; at += size / 4 {
				s.want(s.patch(urls[i], at, data[i*size+at:i*size+at+size/4]), http.StatusNoContent)
			}
		})
	}
	all.Wait()
	if got := s.orphans(); got != int64(len(data)) {
		t.Errorf("the parts take %d bytes, want %d in one file", got, len(data))
	}
	s.want(s.tus("POST", s.url, nil, "Upload-Concat", "final;"+strings.Join(urls, " "), "Upload-Metadata", filename("a")),
		http.StatusCreated)
	s.file("a", data)
	s.clean()
}
