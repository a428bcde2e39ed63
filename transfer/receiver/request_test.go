package receiver_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/transfer/receiver"
)

// FuzzRequest: no request of any protocol ends in a panic or in an internal error, leaves
// the directory of the receiver, or leaves bytes that expiry does not remove. In the request,
// {id} is an upload of 10 bytes that has 3, and {part} a partial upload of as many.
func FuzzRequest(f *testing.F) {
	const tus = "Tus-Resumable: 1.0.0\r\n"
	for _, seed := range []string{
		"PATCH /files/{id} HTTP/1.1\r\nHost: x\r\n" + tus + "Content-Type: application/offset+octet-stream\r\n" +
			"Upload-Offset: 3\r\nUpload-Checksum: sha1 AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\nContent-Length: 7\r\n\r\n0123456",
		"PATCH /files/{id} HTTP/1.1\r\nHost: x\r\n" + tus + "Content-Type: application/offset+octet-stream\r\n" +
			"Upload-Offset: 3\r\nTrailer: Upload-Checksum\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"7\r\n0123456\r\n0\r\nUpload-Checksum: crc32 AAAAAA==\r\n\r\n",
		"POST /files/ HTTP/1.1\r\nHost: x\r\n" + tus + "Upload-Length: 9223372036854775807\r\n\r\n",
		"POST /files/ HTTP/1.1\r\nHost: x\r\n" + tus + "Upload-Length: 5\r\nUpload-Metadata: filename Li4vdXA=\r\n" +
			"Content-Type: application/offset+octet-stream\r\nContent-Length: 5\r\n\r\n01234",
		"POST /files/ HTTP/1.1\r\nHost: x\r\n" + tus + "Upload-Concat: final;/files/{part} /files/{id} ../../{part}\r\n\r\n",
		"POST /files/ HTTP/1.1\r\nHost: x\r\n" + tus + "Upload-Concat: partial\r\nUpload-Length: 5\r\n" +
			"Upload-Metadata: part-of MDEyMzQ1Njc4OWFiY2RlZiA1IDEw\r\n\r\n",
		"POST /files/{id} HTTP/1.1\r\nHost: x\r\n" + tus + "X-HTTP-Method-Override: DELETE\r\n\r\n",
		"HEAD /files/{id} HTTP/1.1\r\nHost: x\r\n" + tus + "\r\n",
		"PUT /files/..%2f..%2fup HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
		"PUT /files/a/0?size=2&total=3 HTTP/1.1\r\nHost: x\r\nContent-Digest: sha-256=:AAAA:\r\nContent-Length: 1\r\n\r\nx",
		"POST /files/a/merge HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /files/{id} HTTP/1.1\r\nHost: x\r\nRange: bytes=1-,-5,0-9223372036854775807\r\n\r\n",
		"POST /files/ HTTP/1.1\r\nHost: x\r\nUpload-Draft-Interop-Version: 8\r\nUpload-Complete: ?1\r\nUpload-Length: 1\r\n" +
			"Content-Disposition: inline; filename=\"..\\\\a\"\r\nRepr-Digest: sha-256=::\r\nContent-Length: 1\r\n\r\nx",
		"PATCH /files/{id} HTTP/1.1\r\nHost: x\r\nUpload-Draft-Interop-Version: 6\r\nUpload-Complete: ?1\r\n" +
			"Upload-Offset: 3\r\nContent-Type: application/partial-upload\r\nContent-Length: 7\r\n\r\n0123456",
	} {
		f.Add([]byte(seed))
	}
	parent := f.TempDir()
	dir := filepath.Join(parent, "uploads")
	const sizeMax = 1 << 20
	r, err := receiver.Open(dir, receiver.Config{MaxSize: sizeMax, Quota: 8 * sizeMax})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { r.Close() })
	site := &site{Receiver: r, dir: dir}
	f.Fuzz(func(t *testing.T, text []byte) {
		site.tb = t
		upload := "POST /files/ HTTP/1.1\r\nHost: x\r\n" + tus + "Upload-Length: 10\r\nContent-Length: 3\r\n" +
			"Content-Type: application/offset+octet-stream\r\n"
		for name, header := range map[string]string{"{id}": "", "{part}": "Upload-Concat: partial\r\n"} {
			created := raw(r, []byte(upload+header+"\r\n012"))
			if created == nil || created.status != http.StatusCreated {
				t.Fatalf("the upload %s was answered %+v", name, created)
			}
			id := filepath.Base(created.Header().Get("Location"))
			text = bytes.ReplaceAll(text, []byte(name), []byte(id))
		}
		a := raw(r, text)
		if a != nil && (a.status < 200 || a.status >= 500 && a.status != http.StatusInsufficientStorage) {
			t.Errorf("status %d for\n%q", a.status, text)
		}
		r.Sweep(far())
		site.clean()
		if names := list(t, parent); len(names) != 1 {
			t.Errorf("beside the receiver's directory there are %q", names)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == ".uploads" {
				continue
			}
			if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
				t.Errorf("the finished file %q has the mode %v", e.Name(), e.Type())
			}
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// raw handles a request in the format of HTTP/1.1, unless it is not one.
func raw(h http.Handler, text []byte) *recorded {
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		return nil
	}
	a := &recorded{header: http.Header{}}
	h.ServeHTTP(a, req)
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a
}

// recorded is a response without its body. Unlike httptest.ResponseRecorder, it does not take an
// interim answer for the final one.
type recorded struct {
	header http.Header
	status int
}

// Header is as http.ResponseWriter says.
func (a *recorded) Header() http.Header { return a.header }

// Write is as http.ResponseWriter says.
func (a *recorded) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return len(p), nil
}

// WriteHeader is as http.ResponseWriter says.
func (a *recorded) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
	}
}

// Numbers that are none, or that no file can have, are refused and reserve nothing.
func TestBadNumbers(t *testing.T) {
	s := open(t, receiver.Config{})
	url := s.create(10)
	for _, text := range []string{
		"", "-1", "+1", "1.0", "1e3", "0x10", "1 2", "٣", "9223372036854775808", "99999999999999999999",
	} {
		s.want(s.tus("POST", s.url, nil, "Upload-Length", text), http.StatusBadRequest)
		s.want(s.tus("PATCH", url, strings.NewReader("x"), "Upload-Offset", text,
			"Content-Type", "application/offset+octet-stream"), http.StatusBadRequest)
		s.want(s.do("PUT", s.url+"a/"+strings.ReplaceAll(text, " ", "%20")+"?size=10", strings.NewReader("x")), 400)
		part := filename("a") + ",part-of " + b64("0123456789abcdef "+text+" 10")
		s.want(s.tus("POST", s.url, nil, "Upload-Length", "1", "Upload-Concat", "partial", "Upload-Metadata", part), 400)
	}
	for _, offset := range []string{"1", "9", "11", "9223372036854775807"} {
		s.want(s.tus("PATCH", url, strings.NewReader("x"), "Upload-Offset", offset,
			"Content-Type", "application/offset+octet-stream"), http.StatusConflict)
	}
	// Sizes that are numbers, and more than the file system can have.
	const most = "9223372036854775807"
	s.want(s.tus("POST", s.url, nil, "Upload-Length", most), http.StatusRequestEntityTooLarge)
	s.want(s.do("PUT", s.url+"a/0?size="+most, strings.NewReader("x")), http.StatusRequestEntityTooLarge)
	deferred := s.want(s.tus("POST", s.url, nil, "Upload-Defer-Length", "1"), 201).Header.Get("Location")
	s.want(s.patch(deferred, 0, nil, "Upload-Length", most), http.StatusRequestEntityTooLarge)
	s.want(s.tus("DELETE", deferred, nil), 204)
	if got := s.Reserved(); got != 10 {
		t.Errorf("%d bytes are reserved, want 10", got)
	}
	s.want(s.tus("DELETE", url, nil), 204)
	s.clean()
}

// A client may be slow as long as it is not silent for ReadTimeout: its upload of 20 bytes
// takes more than 10 times as long.
func TestSlowClient(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	synctest.Test(t, func(t *testing.T) {
		const silence, size = time.Minute, 20
		r, err := receiver.Open(dir, receiver.Config{ReadTimeout: silence})
		if err != nil {
			t.Fatal(err)
		}
		client, conn := net.Pipe()
		l := &single{conn: make(chan net.Conn, 1)}
		l.conn <- conn
		server := &http.Server{Handler: r, ReadHeaderTimeout: silence}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		defer func() {
			client.Close()
			server.Close()
			if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}()
		answers := bufio.NewReader(client)
		write := func(text string) {
			if _, err := io.WriteString(client, text); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		if err := client.SetDeadline(begin.Add(100 * silence)); err != nil {
			t.Fatal(err)
		}
		write(fmt.Sprintf("PUT /files/a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", size))
		for range size {
			<-time.After(silence * 7 / 10)
			write("x")
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("after %v: %+v, %v", time.Since(begin), resp, err)
		}
		if took := time.Since(begin); took < 10*silence {
			t.Errorf("the upload took %v", took)
		}
		resp.Body.Close()
	})
	got, err := os.ReadFile(filepath.Join(dir, "a"))
	if err != nil || string(got) != strings.Repeat("x", 20) {
		t.Errorf("the file has %q, %v", got, err)
	}
}

// single is a listener with one connection.
type single struct{ conn chan net.Conn }

// Accept is as net.Listener says.
func (l *single) Accept() (net.Conn, error) {
	if c, ok := <-l.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

// Close is as net.Listener says.
func (l *single) Close() error { close(l.conn); return nil }

// Addr is as net.Listener says.
func (l *single) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

// TestPlain_ContentRange: a PUT of a part of a file, as curl -C sends it, is not taken for the whole (RFC 9110, 14.5).
func TestPlain_ContentRange(t *testing.T) {
	s := open(t, receiver.Config{})
	s.want(s.do("PUT", "/files/a", strings.NewReader("56789"), "Content-Range", "bytes 5-9/10"), 400)
	s.want(s.do("PUT", "/files/a", strings.NewReader("56789"), "Content-Range", "bytes 5-9/10",
		"Upload-Complete", "?1"), 400)
	s.names()
	s.clean()
}
