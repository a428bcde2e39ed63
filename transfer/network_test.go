package transfer_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/transfer"
)

// One of linkCuts connections breaks, if they break at random.
const linkCuts = 100

// network is connections in memory, whose delays pass in the virtual time of a bubble. It is
// the listener of a server.
type network struct {
	delay  time.Duration // one way
	random *rand.Rand    // cuts a connection in a hundred at random bytes below most; nil: none
	most   int64

	mu       sync.Mutex // guards random
	accepted chan net.Conn
	closed   chan struct{}
	cuts     atomic.Int64
	running  sync.WaitGroup // what passes bytes on
}

func newNetwork() *network {
	return &network{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept is as net.Listener says.
func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.accepted:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close is as net.Listener says. It is called once, by the end of the server.
func (n *network) Close() error {
	close(n.closed)
	return nil
}

// Addr is as net.Listener says.
func (n *network) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	if n.delay > 0 {
		near := server
		var far net.Conn
		far, server = net.Pipe()
		after := n.cutAfter()
		n.running.Go(func() { n.pass(far, near, after) })
		n.running.Go(func() { n.pass(near, far, -1) })
	}
	select {
	case n.accepted <- server:
		return client, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// cutAfter returns after how many bytes to the server a new connection breaks, or -1.
func (n *network) cutAfter() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.random == nil || n.random.IntN(linkCuts) > 0 {
		return -1
	}
	return n.random.Int64N(n.most)
}

// pass passes bytes on after the delay, and the end of the connection. It breaks both sides
// after a number of bytes, unless that is negative.
func (n *network) pass(to, from net.Conn, left int64) {
	type packet struct {
		due time.Time
		b   []byte
	}
	const window, size = 64, 32 << 10
	packets := make(chan packet, window)
	go func() {
		defer close(packets)
		for {
			b := make([]byte, size)
			read, err := from.Read(b)
			packets <- packet{time.Now().Add(n.delay), b[:read]}
			if err != nil {
				return
			}
		}
	}()
	defer to.Close()
	for p := range packets {
		<-time.After(time.Until(p.due))
		if left >= 0 && int64(len(p.b)) > left {
			n.cuts.Add(1)
			from.Close()
			to.Close()
			left = -1
		} else if left >= 0 {
			left -= int64(len(p.b))
		}
		if _, err := to.Write(p.b); err != nil {
			from.Close() // the rest of the packets ends
		}
	}
}

// serve serves on the network until the test ends, and returns a client of it.
func (n *network) serve(t *testing.T, handler http.Handler) *http.Client {
	t.Helper()
	server := &http.Server{Handler: handler}
	ended := make(chan error)
	go func() { ended <- server.Serve(n) }()
	transport := &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: 100, DisableKeepAlives: n.random != nil}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
		n.running.Wait() // the time of a bubble stops with its first goroutine
	})
	return &http.Client{Transport: transport}
}

// uploads runs uploads in a bubble until all have succeeded, and returns their tasks.
func uploads(t *testing.T, cfg transfer.Config, slots int, add func(q *queue.Queue)) (all []queue.Task) {
	t.Helper()
	store := memstore.New(memstore.Config{})
	defer store.Close()
	q := queue.New(store, queue.Config{Retry: quick})
	transfer.Handle(q, cfg)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	add(q)
	go func() { ended <- q.Run(ctx, stint.New(slots, stint.Config{})) }()
	for task, err := range q.Find(t.Context(), queue.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if task, err = q.Wait(t.Context(), task.ID); err != nil || task.State != queue.Succeeded {
			t.Errorf("the upload is %s: %s, %v", task.State, task.Error, err)
		}
		all = append(all, task)
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
	return all
}

// zeros makes a file without content on the disk.
func zeros(t *testing.T, name string, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, nil)
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	return path
}

func addUploads(t *testing.T, q *queue.Queue, o queue.Options, all ...transfer.Upload) {
	t.Helper()
	if _, err := transfer.Add(t.Context(), q, o, all...); err != nil {
		t.Error(err)
	}
}

// meter counts the bytes of bodies that a client sends, after they have been paid for, in
// intervals of the virtual time.
type meter struct {
	base  http.RoundTripper
	every time.Duration
	begin time.Time

	mu     sync.Mutex
	counts []int64
}

// RoundTrip is as http.RoundTripper says.
func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body := r.Body
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
			n, err := body.Read(p)
			m.mu.Lock()
			defer m.mu.Unlock()
			i := int(time.Since(m.begin) / m.every)
			for len(m.counts) <= i {
				m.counts = append(m.counts, 0)
			}
			m.counts[i] += int64(n)
			return n, err
		}))
	}
	return m.base.RoundTrip(r)
}

// sink is a server of tus that discards what it gets, without checksums.
func sink(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodOptions:
		w.Header().Set("Tus-Extension", "creation,concatenation")
	case http.MethodPost:
		w.Header().Set("Location", "/files/1")
		w.WriteHeader(http.StatusCreated)
	case http.MethodPatch:
		n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{r.Body}, make([]byte, 256<<10))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		at, _ := strconv.ParseInt(r.Header.Get("Upload-Offset"), 10, 64)
		w.Header().Set("Upload-Offset", strconv.FormatInt(at+n, 10))
		w.WriteHeader(http.StatusNoContent)
	}
}

// A rate of 50 MiB/s is held over all lanes and files together: within 0.5 % over the whole,
// and within 1 % in each half second.
func TestE5_RateIsHeld(t *testing.T) {
	const rate, files, fileSize = 50 << 20, 4, 100 << 20
	synctest.Test(t, func(t *testing.T) {
		client := newNetwork().serve(t, http.HandlerFunc(sink))
		m := &meter{base: client.Transport, every: time.Second / 2, begin: time.Now()}
		limiter := stint.NewLimiter(rate, stint.LimiterConfig{})
		limiter.Try(rate) // the burst of its beginning
		cfg := transfer.Config{Client: &http.Client{Transport: m}, Rate: &limiter}
		uploads(t, cfg, files, func(q *queue.Queue) {
			for i := range files {
				addUploads(t, q, queue.Options{Key: strconv.Itoa(i % 2)},
					transfer.Upload{Path: zeros(t, "f", fileSize), To: "http://memory/files/", Lanes: 3, ChunkSize: 1 << 20})
			}
		})
		full := m.counts[1 : len(m.counts)-1]
		if len(full) < 10 {
			t.Fatalf("the uploads took %d half seconds", len(m.counts))
		}
		sum := int64(0)
		for i, n := range full {
			sum += n
			if share := float64(n) / (rate / 2); share < 0.99 || share > 1.01 {
				t.Errorf("in half second %d the rate was %.2f %%", i+1, share*100)
			}
		}
		if share := float64(sum) / float64(len(full)) / (rate / 2); share < 0.995 || share > 1.005 {
			t.Errorf("over %d half seconds the rate was %.2f %%", len(full), share*100)
		}
		t.Logf("%d bytes a half second in %d of them: %v", rate/2, len(full), full)
	})
}

// An upload of a high tier takes as long beside ten of a low tier as alone, within 10 %.
func TestE5_HighTierBesideLowOnes(t *testing.T) {
	const rate, size = 10 << 20, 50 << 20
	took := func(low int) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			client := newNetwork().serve(t, http.HandlerFunc(sink))
			limiter := stint.NewLimiter(rate, stint.LimiterConfig{})
			limiter.Try(rate)
			begin := time.Now()
			cfg := transfer.Config{Client: client, Rate: &limiter}
			all := uploads(t, cfg, low+1, func(q *queue.Queue) {
				u := transfer.Upload{Path: zeros(t, "high", size), To: "http://memory/files/", ChunkSize: 1 << 20}
				addUploads(t, q, queue.Options{Tier: stint.High}, u)
				for range low {
					u.Path = zeros(t, "low", size/5)
					addUploads(t, q, queue.Options{Tier: stint.Low}, u)
				}
			})
			for _, task := range all {
				if task.Tier == stint.High {
					d = task.Changed.Sub(begin)
				}
			}
		})
		return d
	}
	alone, beside := took(0), took(10)
	if alone == 0 || beside == 0 || float64(beside) > 1.1*float64(alone) {
		t.Errorf("the upload took %s alone, and %s beside ten of a low tier", alone, beside)
	}
	t.Logf("alone %s, beside ten of a low tier %s", alone, beside)
}

// A server may be busy for any time: answers that say so, and when to try again, do not count as failures.
func TestE5_BusyServer(t *testing.T) {
	const busy = time.Hour
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		client := newNetwork().serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				w.Header().Set("Upload-Offset", "0")
				return
			}
			if r.Method == http.MethodPatch && time.Since(began) < busy {
				time.Sleep(20 * time.Second) // as package receiver waits for a slot
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			sink(w, r)
		}))
		all := uploads(t, transfer.Config{Client: client}, 1, func(q *queue.Queue) {
			addUploads(t, q, queue.Options{}, transfer.Upload{Path: zeros(t, "a", 1<<20), To: "http://memory/files/"})
		})
		if took := time.Since(began); took < busy || all[0].Failures > 0 {
			t.Errorf("after %s it has %d failures: %s", took, all[0].Failures, all[0].Error)
		}
	})
}

// counting counts what is logged.
type counting struct{ n *atomic.Int64 }

// Enabled is as slog.Handler says.
func (counting) Enabled(context.Context, slog.Level) bool { return true }

// Handle counts.
func (c counting) Handle(context.Context, slog.Record) error { c.n.Add(1); return nil }

// WithAttrs is as slog.Handler says.
func (c counting) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup is as slog.Handler says.
func (c counting) WithGroup(string) slog.Handler { return c }
