package receiver_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint/transfer/receiver"
)

// TestE4_RefusedCreationWithAToken: a creation whose body is refused does not remove an upload that an earlier one has
// made.
func TestE4_RefusedCreationWithAToken(t *testing.T) {
	s := open(t, receiver.Config{})
	meta := filename("a") + ",stint-upload " + b64("0123456789abcdef")
	url := s.create(4, "Upload-Metadata", meta)
	s.want(s.tus("POST", s.url, strings.NewReader("four"), "Upload-Length", "4", "Upload-Metadata", meta,
		"Content-Type", "text/plain"), 415)
	s.want(s.patch(url, 0, []byte("four")), 204)
	s.file("a", []byte("four"))
	s.clean()
}

// TestE4_TokenOfACreation: a creation with the token of an earlier one is answered with the upload of that, unfinished
// or finished, also by the next process, and Finished is called once. Another key, and a token whose upload was
// deleted or has expired, get an upload of their own.
func TestE4_TokenOfACreation(t *testing.T) {
	var calls atomic.Int64
	cfg := receiver.Config{
		Key:      func(r *http.Request) string { return r.Header.Get("Tenant") },
		Finished: func(context.Context, receiver.Upload) error { calls.Add(1); return nil },
	}
	s := open(t, cfg)
	data := content(1, 5000)
	meta := filename("a") + ",stint-upload " + b64("0123456789abcdef")
	begin := func(tenant string) answer {
		t.Helper()
		return s.want(s.tus("POST", s.url, nil, "Upload-Length", "5000", "Upload-Metadata", meta, "Tenant", tenant), 201)
	}
	reopen := func() {
		t.Helper()
		s.Close()
		s = openIn(t, s.dir, cfg)
	}
	begins := func(tenant, url, offset string) {
		t.Helper()
		a := begin(tenant)
		if got := a.Header.Get("Location"); got != url || a.Header.Get("Upload-Offset") != offset {
			t.Fatalf("the upload is %s at %s, want %s at %s", got, a.Header.Get("Upload-Offset"), url, offset)
		}
	}
	url := begin("ann").Header.Get("Location")
	s.want(s.patch(url, 0, data[:1000]), 204)
	begins("ann", url, "1000")
	reopen()
	begins("ann", url, "1000")
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "5001", "Upload-Metadata", meta, "Tenant", "ann"), 409)
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "1", "Upload-Metadata", "stint-upload "+b64("short")), 400)
	other := begin("ben").Header.Get("Location")
	s.want(s.tus("DELETE", other, nil), 204)
	if again := begin("ben").Header.Get("Location"); again == url || again == other {
		t.Fatalf("ben's second upload is %s; ann's is %s, and %s was deleted", again, url, other)
	} else {
		s.want(s.tus("DELETE", again, nil), 204)
	}
	s.want(s.patch(url, 1000, data[1000:]), 204)
	begins("ann", url, "5000")
	reopen()
	begins("ann", url, "5000")
	s.file("a", data)
	s.names("a")
	s.clean()
	if n := calls.Load(); n != 1 {
		t.Errorf("Finished was called %d times", n)
	}
	s.Sweep(far())
	if got := begin("ann").Header.Get("Location"); got == url {
		t.Errorf("an upload that has expired is known by its token")
	}
}

// Requests at once with one token get one upload.
func TestE4_TokenOfCreationsAtOnce(t *testing.T) {
	s := open(t, receiver.Config{})
	urls := make([]string, 20)
	var all sync.WaitGroup
	for i := range urls {
		all.Go(func() {
			a := s.tus("POST", s.url, nil, "Upload-Length", "3", "Upload-Metadata",
				filename("a")+",stint-upload "+b64(strings.Repeat("t", 32)))
			urls[i] = a.Header.Get("Location")
		})
	}
	all.Wait()
	for _, url := range urls {
		if url != urls[0] || url == "" {
			t.Errorf("the uploads %q and %q", urls[0], url)
		}
	}
	if n := s.Unfinished(); n != 1 {
		t.Errorf("%d uploads", n)
	}
}

// A complete upload with a token that was not published before its process ended is published by Open, as others are.
func TestE4_TokenOfACompleteUpload(t *testing.T) {
	var fails atomic.Bool
	fails.Store(true)
	s := open(t, failing(receiver.Config{}, "rename", &fails))
	url := s.create(3, "Upload-Metadata", filename("a")+",stint-upload "+b64(strings.Repeat("t", 32)))
	s.want(s.patch(url, 0, []byte("abc")), 500)
	s.Close()
	s = openIn(t, s.dir, receiver.Config{})
	s.file("a", []byte("abc"))
}
