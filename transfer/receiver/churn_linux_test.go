package receiver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/transfer/receiver"
)

// churner makes random requests of one client for uploads that it shares with others.
type churner struct {
	s    *site
	rnd  *rand.Rand
	urls *sharedURLs
	bad  func(status int) bool // which answers are errors
}

// sharedURLs are the URLs that all clients know.
type sharedURLs struct {
	mu  sync.Mutex
	all []string
}

func (u *sharedURLs) add(url string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, url)
}

// pick returns one of the last URLs.
func (u *sharedURLs) pick(n int) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all) == 0 {
		return "/files/none"
	}
	recent := u.all[max(0, len(u.all)-6):]
	return recent[n%len(recent)]
}

func (c *churner) do(method, path string, body io.Reader, length int, h ...string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithCancel(c.s.tb.Context())
	defer cancel()
	if c.rnd.IntN(10) == 0 {
		cancel()
	}
	req := httptest.NewRequestWithContext(ctx, method, path, body)
	req.ContentLength = int64(length)
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	w := httptest.NewRecorder()
	c.s.ServeHTTP(w, req)
	if c.bad(w.Code) {
		c.s.tb.Errorf("%s %s %v: status %d: %s", method, path, h, w.Code, w.Body)
	}
	return w
}

func (c *churner) tus(method, path string, body io.Reader, length int, h ...string) *httptest.ResponseRecorder {
	return c.do(method, path, body, length, append([]string{"Tus-Resumable", "1.0.0"}, h...)...)
}

// churnSize is the size of the files in bytes.
const churnSize = 3000

// step makes a random request.
func (c *churner) step() {
	n := c.rnd.IntN(1000)
	switch c.rnd.IntN(18) {
	case 0:
		c.created(c.tus("POST", "/files/", nil, 0, "Upload-Length", strconv.Itoa(churnSize)))
	case 1:
		c.created(c.tus("POST", "/files/", nil, 0, "Upload-Defer-Length", "1"))
	case 2:
		group := fmt.Sprintf("0123456789abcdef%d", c.rnd.IntN(2))
		place := fmt.Sprintf("%s %d %d", group, c.rnd.IntN(3)*1000, churnSize)
		c.created(c.tus("POST", "/files/", nil, 0, "Upload-Concat", "partial", "Upload-Length", "1000",
			"Upload-Metadata", "part-of "+b64(place)))
	case 3:
		c.created(c.tus("POST", "/files/", nil, 0, "Upload-Concat", "partial", "Upload-Length", "1000"))
	case 4:
		c.tus("DELETE", c.urls.pick(n), nil, 0)
	case 5:
		list := c.urls.pick(n)
		for range c.rnd.IntN(3) {
			list += " " + c.urls.pick(c.rnd.IntN(6))
		}
		c.created(c.tus("POST", "/files/", nil, 0, "Upload-Concat", "final;"+list))
	case 6:
		c.s.Sweep(far())
	case 7:
		c.do("PUT", "/files/whole", bytes.NewReader(make([]byte, n)), n)
	case 8:
		c.do("PUT", "/files/whole", cutBody(make([]byte, n+10), n), n+10)
	case 9:
		at := c.rnd.IntN(3) * 1000
		var body io.Reader = bytes.NewReader(make([]byte, 1000))
		if n < 200 {
			body = cutBody(make([]byte, 1000), n)
		}
		c.do("PUT", fmt.Sprintf("/files/chunks/%d?size=%d", at, churnSize), body, 1000)
	case 10:
		c.created(c.do("POST", "/files/chunks/merge", nil, 0))
	case 11:
		c.do([]string{"GET", "DELETE"}[n%2], "/files/chunks/", nil, 0)
	case 12:
		c.created(c.do("PUT", "/files/draft", bytes.NewReader(make([]byte, n)), n, "Upload-Complete",
			[]string{"?0", "?1"}[n%2]))
	case 13:
		url := c.urls.pick(n)
		head := c.do("HEAD", url, nil, 0, "Upload-Draft-Interop-Version", "8")
		c.do("PATCH", url, bytes.NewReader(make([]byte, n)), n, "Upload-Draft-Interop-Version", "8", "Upload-Offset",
			head.Header().Get("Upload-Offset"), "Upload-Complete", []string{"?0", "?1"}[n%2],
			"Content-Type", "application/partial-upload")
	case 14:
		c.do("GET", c.urls.pick(n), nil, 0)
	default:
		url := c.urls.pick(n)
		head := c.tus("HEAD", url, nil, 0)
		at, err := strconv.Atoi(head.Header().Get("Upload-Offset"))
		if err != nil {
			return
		}
		length, err := strconv.Atoi(head.Header().Get("Upload-Length"))
		if err != nil {
			length = churnSize
		}
		n := max(0, min(c.rnd.IntN(1500), length-at)) // one of unknown length may have more than churnSize
		h := []string{"Upload-Offset", strconv.Itoa(at), "Content-Type", "application/offset+octet-stream"}
		if head.Header().Get("Upload-Defer-Length") != "" && c.rnd.IntN(3) == 0 {
			h = append(h, "Upload-Length", strconv.Itoa(churnSize))
		}
		var body io.Reader = bytes.NewReader(make([]byte, n))
		if c.rnd.IntN(4) == 0 {
			body = cutBody(make([]byte, n), n-n/3)
		}
		c.tus("PATCH", url, body, n, h...)
	}
}

func (c *churner) created(w *httptest.ResponseRecorder) {
	if url := w.Header().Get("Location"); url != "" {
		c.urls.add(url)
	}
}

// TestChurn: clients create, send, break off, cancel, concatenate and let expire the same uploads at once, on a
// disk that may fail. No answer blames the server if the disk is good, and nothing is left at the end: no data, no
// bytes of the quota, no open file, no slot.
func TestChurn(t *testing.T) {
	for _, faulty := range []bool{false, true} {
		t.Run(fmt.Sprint("faulty=", faulty), func(t *testing.T) {
			seed := seeded.Seed(t)
			slots := stint.New(2, stint.Config{})
			cfg := receiver.Config{Slots: &slots, Quota: 1 << 20}
			var broken atomic.Bool
			broken.Store(faulty)
			var mu sync.Mutex
			chance := rand.New(rand.NewPCG(seed, 99))
			s := open(t, receiver.WithFault(cfg, func(op string, n int) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				// What cannot be removed is left until the next Open.
				if op != "torn" && op != "remove" && broken.Load() && chance.IntN(40) == 0 {
					return n / 2, errors.New("broken")
				}
				return 0, nil
			}))
			before := openUnder(t, s.dir)
			urls := &sharedURLs{}
			var all sync.WaitGroup
			for i := range 6 {
				c := &churner{s: s, rnd: rand.New(rand.NewPCG(seed, uint64(i))), urls: urls, bad: func(status int) bool {
					return status >= 500 && !faulty
				}}
				all.Go(func() {
					for range 800 {
						c.step()
					}
				})
			}
			all.Wait()
			broken.Store(false)
			s.Sweep(far())
			s.Sweep(far())
			for _, name := range list(t, filepath.Join(s.dir, ".uploads")) {
				if name != "lock" {
					t.Errorf("%s is left", name)
				}
			}
			s.clean()
			if after := openUnder(t, s.dir); len(after) != len(before) {
				t.Errorf("%q are open", after)
			}
			if u := slots.Stats(); u.Running != 0 {
				t.Errorf("%d slots are taken", u.Running)
			}
		})
	}
}
