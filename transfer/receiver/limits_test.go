package receiver_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/transfer/receiver"
)

// slow sends the header of a PATCH of length bytes on a connection of its own, and returns
// the connection, for the body, and the channel that receives the status of the answer,
// or 0.
func (s *site) slow(url string, offset, length int, h ...string) (net.Conn, <-chan int) {
	s.tb.Helper()
	host := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/files/")
	conn, err := new(net.Dialer).DialContext(s.tb.Context(), "tcp", host)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { conn.Close() })
	head := fmt.Sprintf("PATCH %s HTTP/1.1\r\nHost: %s\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: %d\r\n"+
		"Content-Type: application/offset+octet-stream\r\nContent-Length: %d\r\n", url, host, offset, length)
	for i := 0; i < len(h); i += 2 {
		head += h[i] + ": " + h[i+1] + "\r\n"
	}
	if _, err := conn.Write([]byte(head + "\r\n")); err != nil {
		s.tb.Fatal(err)
	}
	status := make(chan int, 1)
	go func() {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			status <- 0
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	return conn, status
}

// takeOver takes an upload over until the request that writes it has ended: the request
// may arrive after some of the calls. It returns the offset.
func (s *site) takeOver(url string, ended <-chan int) int {
	s.tb.Helper()
	for {
		s.offset(url)
		select {
		case status := <-ended:
			if status != http.StatusConflict && status != 0 {
				s.tb.Errorf("the request that was taken over got status %d", status)
			}
			return s.offset(url)
		default:
		}
	}
}

func TestTakeOver(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(40, 4<<20)
	url := s.create(len(data), "Upload-Metadata", filename("a"))
	at := 0
	for range 5 {
		conn, ended := s.slow(url, at, len(data)-at)
		body := data[at:min(at+1<<20, len(data)-1)]
		go func() { _, _ = conn.Write(body) }()
		next := s.takeOver(url, ended)
		if next < at {
			t.Fatalf("the offset was %d, and %d later", at, next)
		}
		conn.Close()
		at = next
	}
	s.want(s.patch(url, at, data[at:]), 204)
	s.file("a", data)
	s.clean()
}

// TestRefusedBodyThatDoesNotEnd: the answer to a request that is refused does not wait for
// the end of its body.
func TestRefusedBodyThatDoesNotEnd(t *testing.T) {
	s := open(t, receiver.Config{})
	_, ended := s.slow(s.create(100), 7, 93)
	if status := <-ended; status != http.StatusConflict {
		t.Errorf("status %d, want 409", status)
	}
}

// TestTakeOver_WhileWaitingForASlot: the former request does not even need a slot to end.
func TestTakeOver_WhileWaitingForASlot(t *testing.T) {
	slots := stint.New(1, stint.Config{})
	s := open(t, receiver.Config{Slots: &slots})
	permit, err := slots.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	url := s.create(3, "Upload-Metadata", filename("a"))
	_, ended := s.slow(url, 0, 3)
	for len(slots.Waiting()) == 0 {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.takeOver(url, ended); got != 0 {
		t.Errorf("the offset is %d", got)
	}
	permit.Release()
	s.want(s.patch(url, 0, []byte("abc")), 204)
	if stats := slots.Stats(); stats.Running != 0 {
		t.Errorf("%d slots are in use after all requests", stats.Running)
	}
	s.file("a", []byte("abc"))
}

func TestE5_SlotsByTierAndKey(t *testing.T) {
	slots := stint.New(1, stint.Config{Holders: true})
	s := open(t, receiver.Config{
		Slots:    &slots,
		Key:      func(r *http.Request) string { return r.Header.Get("Tenant") },
		Priority: func(r *http.Request) stint.Priority { p, _ := stint.ParsePriority(r.Header.Get("Tier")); return p },
	})
	permit, err := slots.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	url := s.create(3)
	_, _ = s.slow(url, 0, 3, "Tenant", "ann", "Tier", "high")
	for len(slots.Waiting()) == 0 {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	if w := slots.Waiting()[0]; w.Key != "ann" || w.Priority != stint.High {
		t.Errorf("the request waits with key %q in tier %v", w.Key, w.Priority)
	}
	permit.Release()
}

// A request that waits for a slot for long is logged, at most once a minute, with the number of those that wait.
func TestE5_WaitsForSlotsAreLogged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	synctest.Test(t, func(t *testing.T) {
		slots := stint.New(1, stint.Config{})
		var log bytes.Buffer
		r, err := receiver.Open(dir, receiver.Config{Slots: &slots, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		permit, err := slots.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				w := httptest.NewRecorder()
				r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "PUT", "/files/a", strings.NewReader("abc")))
				if w.Code != http.StatusCreated {
					t.Errorf("status %d: %s", w.Code, w.Body)
				}
			})
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		permit.Release()
		all.Wait()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		const says = `msg="requests wait for a slot" waited=10s waiting=3 running=1 limit=1`
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, says) {
			t.Errorf("the log has %q; want %q once", text, says)
		}
	})
}

// A request that gets no slot for 20 s is answered: the client tries again after the time that the answer says.
func TestE5_WaitsForSlotsEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	synctest.Test(t, func(t *testing.T) {
		slots := stint.New(1, stint.Config{Queue: 1, WhenFull: stint.Refuse})
		r, err := receiver.Open(dir, receiver.Config{Slots: &slots})
		if err != nil {
			t.Fatal(err)
		}
		put := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "PUT", "/files/a", strings.NewReader("abc")))
			return w
		}
		permit, err := slots.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for _, wait := range []time.Duration{20 * time.Second, 0} { // the second finds the queue of the slots full
			all.Go(func() {
				began := time.Now()
				w := put()
				if took := time.Since(began); w.Code != 503 || w.Header().Get("Retry-After") != "1" || took != wait {
					t.Errorf("after %s the answer is %d %s, Retry-After %q", took, w.Code, w.Body, w.Header().Get("Retry-After"))
				}
			})
			synctest.Wait()
		}
		all.Wait()
		permit.Release()
		if w := put(); w.Code != http.StatusCreated {
			t.Errorf("with a free slot the answer is %d %s", w.Code, w.Body)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A creation by the draft that is refused keeps nothing: its client repeats it, and does not know the upload.
func TestE5_RefusedDraftCreation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	synctest.Test(t, func(t *testing.T) {
		slots := stint.New(1, stint.Config{})
		r, err := receiver.Open(dir, receiver.Config{Slots: &slots, Quota: 3})
		if err != nil {
			t.Fatal(err)
		}
		put := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(t.Context(), "PUT", "/files/a", strings.NewReader("abc"))
			req.Header.Set("Upload-Complete", "?1")
			r.ServeHTTP(w, req)
			return w
		}
		permit, err := slots.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if w := put(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Location") != "" {
			t.Errorf("while all slots are busy the answer is %d %s, Location %q", w.Code, w.Body, w.Header().Get("Location"))
		}
		if n := r.Reserved(); n != 0 {
			t.Errorf("%d bytes are still reserved", n)
		}
		permit.Release()
		if w := put(); w.Code != http.StatusCreated {
			t.Errorf("with a free slot the answer is %d %s", w.Code, w.Body)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// An upload of unknown length that is larger than a lowered MaxSize receives no more.
func TestE5_LoweredMaxSize(t *testing.T) {
	s := open(t, receiver.Config{})
	url := s.want(s.tus("POST", s.url, nil, "Upload-Defer-Length", "1"), 201).Header.Get("Location")
	data := content(5, 3000)
	s.want(s.patch(url, 0, data[:2000]), 204)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, s.dir, receiver.Config{MaxSize: 1000})
	stream := struct{ io.Reader }{bytes.NewReader(data[2000:])} // sent in chunks without a length
	s.want(s.tus("PATCH", url, stream, "Upload-Offset", "2000", "Content-Type", "application/offset+octet-stream"), 413)
	if n := s.offset(url); n != 2000 {
		t.Errorf("the upload has %d bytes", n)
	}
}

func TestE5_Rate(t *testing.T) {
	limiter := stint.NewLimiter(1<<30, stint.LimiterConfig{Capacity: 64 << 20})
	s := open(t, receiver.Config{Rate: &limiter})
	before := limiter.Stats().Tokens
	url := s.create(32 << 20)
	s.want(s.patch(url, 0, make([]byte, 32<<20)), 204)
	if after := limiter.Stats().Tokens; after > before {
		t.Errorf("the limiter had %d tokens, and has %d after an upload", before, after)
	}
	none := stint.NewLimiter(1, stint.LimiterConfig{Capacity: 1})
	none.Try(1)
	s = open(t, receiver.Config{Rate: &none})
	url = s.create(1000)
	conn, ended := s.slow(url, 0, 1000)
	go func() { _, _ = conn.Write(make([]byte, 1000)) }()
	for none.Stats().Queued == 0 {
		if err := t.Context().Err(); err != nil {
			t.Fatal(err)
		}
	}
	s.takeOver(url, ended)
}

func TestSilentClient(t *testing.T) {
	s := open(t, receiver.Config{ReadTimeout: 100 * time.Millisecond})
	data := content(41, 1000)
	url := s.create(len(data), "Upload-Metadata", filename("a"))
	conn, ended := s.slow(url, 0, len(data))
	if _, err := conn.Write(data[:500]); err != nil {
		t.Fatal(err)
	}
	if status := <-ended; status != http.StatusRequestTimeout {
		t.Errorf("status %d, want 408", status)
	}
	if got := s.offset(url); got != 500 {
		t.Errorf("of 500 bytes before the silence %d are kept", got)
	}
	s.want(s.patch(url, 500, data[500:]), 204)
	s.file("a", data)
}

func TestQuota(t *testing.T) {
	s := open(t, receiver.Config{
		Quota: 1000, KeyQuota: 600,
		Key: func(r *http.Request) string { return r.Header.Get("Tenant") },
	})
	const full = http.StatusInsufficientStorage
	a := s.create(600, "Tenant", "a")
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "1", "Tenant", "a"), full)
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "401", "Tenant", "b"), full)
	b := s.want(s.tus("POST", s.url, nil, "Upload-Defer-Length", "1", "Tenant", "b"), 201).Header.Get("Location")
	s.want(s.patch(b, 0, make([]byte, 401)), full)
	s.want(s.tus("DELETE", a, nil), 204)
	s.want(s.patch(b, 0, make([]byte, 401)), 204)
	s.want(s.patch(b, 401, nil, "Upload-Length", "700"), full)
	s.want(s.patch(b, 401, nil, "Upload-Length", "600"), 204)
	s.Close()
	s = openIn(t, s.dir, receiver.Config{Quota: 1000})
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "401"), full)
	s.want(s.patch(b, 401, make([]byte, 199)), 204) // finished files do not count
	s.create(1000)
}

// TestQuota_LengthWithoutRoom: a length that the disk has no room for takes nothing of the quota.
func TestQuota_LengthWithoutRoom(t *testing.T) {
	var fails atomic.Bool
	s := open(t, receiver.WithFault(receiver.Config{Quota: 1000}, func(op string, _ int) (int, error) {
		if op == "allocate" && fails.Load() {
			return 0, syscall.ENOSPC
		}
		return 0, nil
	}))
	url := s.want(s.tus("POST", s.url, nil, "Upload-Defer-Length", "1"), 201).Header.Get("Location")
	s.want(s.patch(url, 0, make([]byte, 100)), 204)
	fails.Store(true)
	s.want(s.patch(url, 100, nil, "Upload-Length", "900"), 507)
	fails.Store(false)
	if got := s.Reserved(); got != 100 {
		t.Errorf("%d bytes are reserved, want 100", got)
	}
	s.create(900)
}

// TestUnfinishedUploadsAreBounded: uploads without bytes take nothing of a quota, and memory all the same. Parts
// count, too. Finished and removed ones do not.
func TestUnfinishedUploadsAreBounded(t *testing.T) {
	const most, full = 4, http.StatusInsufficientStorage
	s := open(t, receiver.WithUploadsMax(receiver.Config{}, most))
	part := func(at int) answer {
		return s.tus("POST", s.url, nil, "Upload-Length", "1", "Upload-Concat", "partial", "Upload-Metadata",
			"part-of "+b64(fmt.Sprintf("0123456789abcdef %d 100", at)))
	}
	first := s.want(s.tus("POST", s.url, nil, "Upload-Defer-Length", "1"), 201).Header.Get("Location")
	s.create(10)
	s.want(part(0), 201)
	s.want(part(1), 201)
	s.want(part(1), 201) // the same one
	s.want(part(2), full)
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "10"), full)
	s.want(s.do("PUT", "/files/a/0?size=10", strings.NewReader("abc")), full)
	s.want(s.do("PUT", "/files/a", strings.NewReader("abc")), full)
	s.want(s.patch(first, 0, []byte("abc"), "Upload-Length", "3"), 204)
	s.want(s.do("PUT", "/files/a", strings.NewReader("abc")), 201)
	s.want(s.do("PUT", "/files/a", strings.NewReader("abc")), 201)
	s.create(10)
	s.Close()
	s = openIn(t, s.dir, receiver.WithUploadsMax(receiver.Config{}, most))
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "10"), full)
	s.Sweep(far())
	s.create(10)
}

func TestFullDisk(t *testing.T) {
	var fail func(op string, n int) (int, error)
	s := open(t, receiver.WithFault(receiver.Config{}, func(op string, n int) (int, error) { return fail(op, n) }))
	full := func(ops ...string) func(string, int) (int, error) {
		return func(op string, n int) (int, error) {
			if slices.Contains(ops, op) {
				return n / 2, syscall.ENOSPC
			}
			return 0, nil
		}
	}
	fail = full("allocate")
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "1000"), 507)
	s.clean()
	fail = full("write") // of the journal
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "1000"), 507)
	s.clean()
	fail = full()
	data := content(42, 3<<20)
	url := s.create(len(data), "Upload-Metadata", filename("a"))
	s.want(s.patch(url, 0, data[:1<<20]), 204)
	fail = full("write")
	s.want(s.patch(url, 1<<20, data[1<<20:]), 507)
	fail = full()
	at := s.offset(url)
	if at < 1<<20 {
		t.Errorf("the offset fell to %d", at)
	}
	s.want(s.patch(url, at, data[at:]), 204)
	s.file("a", data)
	s.clean()
}

// After a sync that failed, what was written may be lost, and the next sync succeeds. So the
// upload is not published by a repetition: it is removed, and its client sends it again.
func TestSyncThatFails(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{{syscall.EIO, 500}, {syscall.ENOSPC, 507}} {
		var fails atomic.Bool
		fails.Store(true)
		var log bytes.Buffer
		s := open(t, receiver.WithFault(receiver.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))},
			func(op string, _ int) (int, error) {
				if op == "sync" && fails.Load() {
					return 0, c.err
				}
				return 0, nil
			}))
		url := s.create(3, "Upload-Metadata", filename("a"))
		s.want(s.patch(url, 0, []byte("abc")), c.want)
		fails.Store(false)
		s.want(s.patch(url, 3, nil), 404)
		s.names()
		s.clean()
		if n := s.Reserved(); n != 0 {
			t.Errorf("%v: the file takes %d bytes of the quota", c.err, n)
		}
		if !strings.Contains(log.String(), "check the disk") {
			t.Errorf("%v: the log has %q", c.err, &log)
		}
		url = s.create(3, "Upload-Metadata", filename("a"))
		s.want(s.patch(url, 0, []byte("abc")), 204)
		s.file("a", []byte("abc"))
	}
}

// An upload that is larger than a file may be on the disk is refused for good: as after an
// error of the server, its client would try again and again.
func TestTooLargeForTheDisk(t *testing.T) {
	s := open(t, receiver.WithFault(receiver.Config{}, func(op string, _ int) (int, error) {
		if op == "allocate" {
			return 0, syscall.EFBIG
		}
		return 0, nil
	}))
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "9223372036854775807"), 413)
	s.clean()
}

func TestBadInput(t *testing.T) {
	s := open(t, receiver.Config{})
	for _, id := range []string{
		strings.Repeat("0", 32), "x", "..%2f..%2fetc%2fpasswd", ".uploads", "lock", strings.Repeat("a", 300), "%00",
	} {
		for _, method := range []string{"HEAD", "PATCH", "DELETE"} {
			a := s.tus(method, s.url+id, nil, "Upload-Offset", "0", "Content-Type", "application/offset+octet-stream")
			s.want(a, http.StatusNotFound)
		}
		s.want(s.do("GET", s.url+id, nil), 404+map[bool]int{true: -4}[strings.Contains(id, "%2f")])
	}
	names := map[string]string{
		"../../up":                        "up",
		`C:\temp\win.txt`:                 "win.txt",
		"nul\x00byte":                     "nulbyte",
		".uploads":                        "uploads",
		"..":                              "",
		"line\nbreak":                     "linebreak",
		"not\xffutf-8":                    "not\uFFFDutf-8",
		strings.Repeat("é", 150):          strings.Repeat("é", 120),
		strings.Repeat("x", 300) + ".tar": strings.Repeat("x", 236) + ".tar",
	}
	for name, want := range names {
		if got := receiver.CleanName(strings.ToValidUTF8(name, "\uFFFD")); got != want {
			t.Errorf("the name %.40q became %q, want %q", name, got, want)
		}
		url := s.create(1, "Upload-Metadata", filename(name))
		s.want(s.patch(url, 0, []byte("x")), 204)
		if want == "" {
			want = url[strings.LastIndexByte(url, '/')+1:]
		}
		s.file(want, []byte("x"))
	}
	for _, path := range []string{"a%00b", "%2e%2e/0?size=1", ".hidden", strings.Repeat("x", 300)} {
		s.want(s.do("PUT", s.url+path, strings.NewReader("x")), http.StatusBadRequest)
	}
	s.clean()
}

func TestBodyLongerThanSaid(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(43, 3<<20)
	url := s.create(len(data), "Upload-Metadata", filename("a"))
	long := append(bytes.Clone(data), "more"...)
	s.want(s.patch(url, 0, long), 413)
	if got := s.offset(url); got != 0 {
		t.Errorf("of a body that said it is too long %d bytes are kept", got)
	}
	s.want(s.tus("PATCH", url, struct{ io.Reader }{bytes.NewReader(long)}, "Upload-Offset", "0",
		"Content-Type", "application/offset+octet-stream"), 413)
	at := s.offset(url)
	if at >= len(data) {
		t.Errorf("a body that is too long has filled the upload")
	}
	s.names()
	s.want(s.patch(url, at, data[at:]), 204)
	s.file("a", data)
	s.clean()
}

func TestFinishedIsCalledUntilItSucceeds(t *testing.T) {
	var fail atomic.Bool
	fail.Store(true)
	var mu sync.Mutex
	var got []receiver.Upload
	cfg := receiver.Config{Finished: func(_ context.Context, u receiver.Upload) error {
		if fail.Load() {
			return errors.New("not yet")
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, u)
		return nil
	}}
	s := open(t, cfg)
	url := s.create(3, "Upload-Metadata", filename("a b"))
	s.want(s.patch(url, 0, []byte("abc")), 500)
	s.file("a b", []byte("abc"))
	s.want(s.patch(url, 3, nil), 500) // the client asks again
	s.Close()
	s = openIn(t, s.dir, cfg)
	s.Sweep(far()) // what is not announced does not expire
	fail.Store(false)
	s.want(s.patch(url, 3, nil), 204)
	s.want(s.patch(url, 3, nil), 204)
	s.Sweep(time.Now())
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 1 || got[0].Name != "a b" || got[0].Size != 3 || got[0].Path != filepath.Join(s.dir, "a b") ||
		!strings.HasSuffix(url, got[0].ID) || got[0].Metadata["filename"] != "a b" {
		t.Errorf("Finished got %+v", got)
	}
}

func TestOpen(t *testing.T) {
	s := open(t, receiver.Config{})
	if _, err := receiver.Open(s.dir, receiver.Config{}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second Open returned %v", err)
	}
	if info, err := os.Stat(s.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has the mode %v, %v", info.Mode(), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); !errors.Is(err, receiver.ErrClosed) {
		t.Errorf("a second Close returned %v", err)
	}
	s.want(s.do("GET", s.url+"x", nil), 503)
	for _, name := range []string{"", ".log", ".log.new"} {
		name = strings.Repeat("0", 32) + name
		if err := os.WriteFile(filepath.Join(s.dir, ".uploads", name), []byte("leftover"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openIn(t, s.dir, receiver.Config{}).clean()
	if _, err := receiver.Open(t.TempDir(), receiver.Config{Path: "x", MaxSize: -1}); err == nil ||
		!strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), "MaxSize") {
		t.Errorf("Open with a bad configuration returned %v", err)
	}
}

// TestCloseEndsRequests: Close does not wait for bodies that do not end.
func TestCloseEndsRequests(t *testing.T) {
	s := open(t, receiver.Config{})
	url := s.create(1 << 20)
	conn, ended := s.slow(url, 0, 1<<20)
	if _, err := conn.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	<-ended
}

func TestOrigins(t *testing.T) {
	s := open(t, receiver.Config{Origins: []string{"https://example.com"}})
	const origin = "https://example.com"
	a := s.want(s.do("OPTIONS", s.url, nil, "Origin", origin, "Access-Control-Request-Method", "PATCH"), 204,
		"Access-Control-Allow-Origin", "https://example.com")
	allowed := a.Header.Get("Access-Control-Allow-Headers")
	if !strings.Contains(allowed, "Upload-Offset") || !strings.Contains(allowed, "Authorization") ||
		!strings.Contains(a.Header.Get("Access-Control-Allow-Methods"), "PATCH") {
		t.Errorf("the preflight was answered %v", a.Header)
	}
	a = s.tus("POST", s.url, nil, "Upload-Length", "3", "Origin", "https://example.com")
	if !strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), "Location") {
		t.Errorf("the answer has %v", a.Header)
	}
	s.want(s.do("OPTIONS", s.url, nil, "Origin", "https://evil.example"), 204, "Access-Control-Allow-Origin", "")
	s = open(t, receiver.Config{})
	s.want(s.do("OPTIONS", s.url, nil, "Origin", "https://example.com"), 204, "Access-Control-Allow-Origin", "")
}

// TestMetadataIsBounded: what a request says about its file has at most 16 KiB in each protocol: it stays in memory and
// in the journal.
func TestMetadataIsBounded(t *testing.T) {
	s := open(t, receiver.Config{})
	long := strings.Repeat("x", 17<<10)
	const large = http.StatusRequestHeaderFieldsTooLarge
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "1", "Upload-Metadata", filename(long)), large)
	for _, h := range [][]string{
		{"Content-Disposition", "attachment; filename=" + long},
		{"Content-Type", "text/" + long},
	} {
		s.want(s.do("POST", s.url, nil, append(h, "Upload-Complete", "?0")...), large)
		s.want(s.do("PUT", s.url+"a", nil, h...), large)
		s.want(s.do("POST", s.url+"a/merge", nil, h...), 404)
	}
	s.want(s.do("PUT", s.url+long, nil, "Upload-Complete", "?0"), large)
	s.names()
	s.clean()
}

// TestE5_OwnDelayIsNoSilence: the time for which the disk delays the receiver is not taken for silence of the client.
// By HTTP/2 a deadline of the connection that passes meanwhile would cost the rest of the body.
func TestE5_OwnDelayIsNoSilence(t *testing.T) {
	const silence = time.Second
	var slow sync.Once
	r, err := receiver.Open(filepath.Join(t.TempDir(), "uploads"), receiver.WithFault(receiver.Config{
		ReadTimeout: silence,
	}, func(op string, n int) (int, error) {
		if op == "write" && n > 1<<10 {
			slow.Do(func() { <-time.After(silence * 5 / 4) })
		}
		return 0, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	server := httptest.NewUnstartedServer(r)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	body := bytes.NewReader(make([]byte, 4<<20))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL+"/files/f", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated || resp.ProtoMajor != 2 {
		t.Errorf("%s: status %d, want 201", resp.Proto, resp.StatusCode)
	}
}

// TestAnswerWithoutTheBody: a body that is announced and does not come delays no answer to a request that does not
// receive it.
func TestAnswerWithoutTheBody(t *testing.T) {
	s := open(t, receiver.Config{})
	const tus = "Tus-Resumable: 1.0.0\r\n"
	s.want(s.do("PUT", "/files/f/0?size=8", strings.NewReader("0123")), 201)
	finished := s.want(s.do("PUT", "/files/g", bytes.NewReader(make([]byte, 1<<20))), 201).Header.Get("Location")
	id := s.create(4)
	host := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/files/")
	var all sync.WaitGroup
	for head, status := range map[string]int{
		"PUT /files/f/0?size=8 HTTP/1.1\r\n": 200, // the chunk is there
		"OPTIONS /files/ HTTP/1.1\r\n":       204,
		"HEAD " + id + " HTTP/1.1\r\n" + tus: 200,
		"GET " + finished + " HTTP/1.1\r\n":  200,
		"GET /files/f/ HTTP/1.1\r\n":         200,
		"POST /files/ HTTP/1.1\r\nUpload-Length: 4\r\nX-HTTP-Method-Override: HEAD\r\n" + tus: 404,
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		all.Go(func() {
			if _, err := io.WriteString(conn, head+"Host: x\r\nContent-Length: 4\r\n\r\n"); err != nil {
				t.Error(err)
			}
			method, _, _ := strings.Cut(head, " ")
			resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
			if err != nil {
				t.Errorf("%.20q: %v", head, err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode != status {
				t.Errorf("%.20q: status %d, want %d", head, resp.StatusCode, status)
			}
		})
	}
	all.Wait()
}

// TestQuota_RefusedBytes: bytes of a body that is not kept take no room, also if the length of the upload is not known.
func TestQuota_RefusedBytes(t *testing.T) {
	s := open(t, receiver.Config{KeyQuota: 10 << 20})
	url := s.want(s.tus("POST", s.url, nil, "Upload-Defer-Length", "1"), 201).Header.Get("Location")
	s.want(s.patch(url, 0, make([]byte, 1000)), 204)
	s.want(s.patch(url, 1000, make([]byte, 9<<20), "Upload-Checksum", checksum("md5", nil)), 460)
	size := func() int64 {
		info, err := os.Stat(s.data(url))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if size() != 1000 || s.Reserved() != 1000 {
		t.Errorf("of 1000 bytes %d are on the disk, %d count", size(), s.Reserved())
	}
	s.Close()
	if err := os.Truncate(s.data(url), 5<<20); err != nil { // as a kill within the body leaves it
		t.Fatal(err)
	}
	s = openIn(t, s.dir, receiver.Config{})
	if size() != 1000 || s.Reserved() != 1000 {
		t.Errorf("after a restart %d bytes are on the disk, %d count", size(), s.Reserved())
	}
}
