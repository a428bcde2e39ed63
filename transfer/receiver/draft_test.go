package receiver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/transfer/receiver"
)

// draft sends a request of the IETF draft.
func (s *site) draft(version, method, url string, body io.Reader, h ...string) answer {
	s.tb.Helper()
	return s.do(method, url, body, append([]string{"Upload-Draft-Interop-Version", version}, h...)...)
}

func (s *site) append(version, url string, offset int, body []byte, complete string, h ...string) answer {
	s.tb.Helper()
	return s.draft(version, "PATCH", url, bytes.NewReader(body), append([]string{
		"Upload-Offset", fmt.Sprint(offset), "Upload-Complete", complete, "Content-Type", "application/partial-upload",
	}, h...)...)
}

// problem fails the test unless an answer has a problem of the type.
func (s *site) problem(a answer, kind string) map[string]any {
	s.tb.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		s.tb.Fatal(err)
	}
	if got := p["type"]; got != "https://iana.org/assignments/http-problem-types#"+kind {
		s.tb.Fatalf("the type of the problem is %v, want %s", got, kind)
	}
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		s.tb.Fatalf("the type of the answer is %q", got)
	}
	return p
}

func TestDraft_WholeInOneRequest(t *testing.T) {
	for _, version := range []string{"6", "8"} {
		s := open(t, receiver.Config{MaxSize: 1 << 30})
		data := content(20, 2<<20)
		var interim http.Header
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				if code == 104 {
					interim = http.Header(h)
				}
				return nil
			},
		})
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Upload-Draft-Interop-Version", version)
		req.Header.Set("Upload-Complete", "?1")
		req.Header.Set("Content-Disposition", `inline; filename="a b.jpg"; filename*=UTF-8''%e2%82%ac.jpg`)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusCreated || resp.Header.Get("Upload-Complete") != "?1" {
			t.Fatalf("status %d, Upload-Complete %q", resp.StatusCode, resp.Header.Get("Upload-Complete"))
		}
		url := interim.Get("Location")
		if url == "" || url != resp.Header.Get("Location") || interim.Get("Upload-Draft-Interop-Version") != version ||
			!strings.HasPrefix(interim.Get("Upload-Limit"), "max-size=1073741824, max-age=") {
			t.Fatalf("the interim answer has %v", interim)
		}
		s.file("€.jpg", data)
		s.want(s.draft(version, "HEAD", url, nil), 204, "Upload-Complete", "?1", "Upload-Offset", fmt.Sprint(len(data)),
			"Upload-Length", fmt.Sprint(len(data)), "Cache-Control", "no-store")
		s.problem(s.want(s.append(version, url, len(data), nil, "?1"), 400), "completed-upload")
		s.clean()
	}
}

func TestDraft_Pieces(t *testing.T) {
	for _, version := range []string{"6", "8"} {
		s := open(t, receiver.Config{})
		data := content(21, 10000)
		a := s.want(s.draft(version, "POST", s.url, bytes.NewReader(data[:10]), "Upload-Complete", "?0"), 201,
			"Upload-Complete", "?0", "Upload-Offset", "10")
		url := a.Header.Get("Location")
		a = s.want(s.draft(version, "HEAD", url, nil), 204,
			"Upload-Offset", "10", "Upload-Complete", "?0", "Upload-Length", "")
		if !strings.HasPrefix(a.Header.Get("Upload-Limit"), "max-age=") {
			t.Errorf("Upload-Limit is %q", a.Header.Get("Upload-Limit"))
		}
		a = s.want(s.append(version, url, 11, data[11:20], "?0"), 409, "Upload-Offset", "10", "Upload-Complete", "?0")
		if p := s.problem(a, "mismatching-upload-offset"); p["expected-offset"] != 10.0 || p["provided-offset"] != 11.0 {
			t.Errorf("the problem is %v", p)
		}
		s.want(s.append(version, url, 10, data[10:20], "?0", "Upload-Length", "10000"), 204, "Upload-Complete", "?0")
		s.problem(s.want(s.append(version, url, 20, data[20:30], "?0", "Upload-Length", "9999"), 400),
			"inconsistent-upload-length")
		s.problem(s.want(s.append(version, url, 20, data[20:30], "?1"), 400), "inconsistent-upload-length")
		s.problem(s.want(s.append(version, url, 20, append(data[20:len(data):len(data)], 'x'), "?0"), 400),
			"inconsistent-upload-length")
		// The length does not complete an upload: the client does.
		s.want(s.append(version, url, 20, data[20:], "?0"), 204, "Upload-Complete", "?0")
		s.names()
		s.want(s.append(version, url, len(data), nil, "?1"), 200, "Upload-Complete", "?1")
		s.file(url[strings.LastIndexByte(url, '/')+1:], data)
		s.clean()
	}
}

func TestDraft_UnknownLength(t *testing.T) {
	for _, version := range []string{"6", "8"} {
		s := open(t, receiver.Config{MaxSize: 5000})
		data := content(22, 5000)
		stream := struct{ io.Reader }{bytes.NewReader(data)} // sent in chunks without a length
		s.want(s.draft(version, "PUT", s.url+"a", stream, "Upload-Complete", "?1"), 201, "Upload-Complete", "?1")
		s.file("a", data)
		stream = struct{ io.Reader }{bytes.NewReader(append(data, 'x'))}
		a := s.want(s.draft(version, "PUT", s.url+"b", stream, "Upload-Complete", "?1"), 413, "Upload-Complete", "?0")
		s.want(s.draft(version, "DELETE", a.Header.Get("Location"), nil), 204)
		s.want(s.draft(version, "HEAD", a.Header.Get("Location"), nil), 404)
		s.names("a")
		s.clean()
	}
}

func TestDraft_ReprDigest(t *testing.T) {
	for _, version := range []string{"6", "8"} {
		s := open(t, receiver.Config{})
		data := content(23, 5000)
		put := func(name string, body []byte) answer {
			return s.draft(version, "PUT", s.url+name, bytes.NewReader(body),
				"Upload-Complete", "?1", "Repr-Digest", digest(data))
		}
		s.want(put("a", data), 201)
		s.want(put("b", data[1:]), 460)
		s.names("a")
		s.clean()
	}
}

// progress sends a body whose next piece follows when an interim answer has confirmed the one
// before, and returns the final answer. The body begins at an offset of the upload.
func (s *site) progress(req *http.Request, offset int, body []byte, version string) answer {
	s.tb.Helper()
	const piece = receiver.RecordEvery + 64<<10 // more than buffers hold back
	offsets := make(chan int, 100)
	ctx, stop := context.WithTimeout(s.tb.Context(), time.Minute)
	s.tb.Cleanup(stop)
	req = req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if at, err := strconv.Atoi(h.Get("Upload-Offset")); err == nil && code == 104 {
				offsets <- at
			}
			return nil
		},
	}))
	req.Header.Set("Upload-Draft-Interop-Version", version)
	sent, last := 0, offset
	req.ContentLength = int64(len(body))
	req.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
		if sent > 0 && sent%piece == 0 && sent < len(body) {
			select {
			case at := <-offsets:
				if at <= last || at > offset+sent {
					s.tb.Errorf("an interim answer has the offset %d, after %d, when %d bytes were sent from %d", at, last, sent,
						offset)
				}
				last = at
			case <-ctx.Done():
				return 0, fmt.Errorf("no interim answer came after %d bytes", sent)
			}
		}
		n := copy(p, body[sent:min(len(body), sent-sent%piece+piece)])
		sent += n
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.tb.Fatal(err)
	}
	resp.Body.Close()
	if last == offset {
		s.tb.Error("no interim answer had an offset")
	}
	return answer{Response: resp}
}

// Interim answers tell the offset while a creation and an append are received. A client that names
// no version, and one that sends faster than the interval, gets none.
func TestDraft_Progress(t *testing.T) {
	data := content(24, 8<<20)
	half := len(data)/2 + 1
	for _, version := range []string{"6", "8"} {
		s := open(t, receiver.WithInterval(receiver.Config{}, time.Nanosecond))
		req, err := http.NewRequest(http.MethodPut, s.url+"a", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Upload-Complete", "?0")
		created := s.want(s.progress(req, 0, data[:half], version), 201, "Upload-Offset", strconv.Itoa(half))
		url := created.Header.Get("Location")
		req, err = http.NewRequest(http.MethodPatch, strings.TrimSuffix(s.url, "/files/")+url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Upload-Complete": "?1", "Upload-Offset": strconv.Itoa(half), "Content-Type": "application/partial-upload",
		} {
			req.Header.Set(name, value)
		}
		s.want(s.progress(req, half, data[half:], version), 200, "Upload-Complete", "?1")
		s.file("a", data)
		s.clean()
	}
	for version, interval := range map[string]time.Duration{"": time.Nanosecond, "8": time.Hour} {
		s := open(t, receiver.WithInterval(receiver.Config{}, interval))
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				if version == "" || h.Get("Upload-Offset") != "" {
					t.Errorf("version %q got %d with %v", version, code, h)
				}
				return nil
			},
		})
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, s.url+"a", bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Upload-Complete", "?1")
		if version != "" {
			req.Header.Set("Upload-Draft-Interop-Version", version)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusCreated {
			t.Errorf("version %q: %s", version, resp.Status)
		}
		s.file("a", data)
	}
}

func TestDraft_Refused(t *testing.T) {
	s := open(t, receiver.Config{MaxSize: 100})
	s.want(s.do("OPTIONS", s.url, nil), 204, "Accept-Patch", "application/partial-upload, application/offset+octet-stream",
		"Upload-Limit", "max-size=100, max-age=86400")
	s.want(s.draft("3", "POST", s.url, nil, "Upload-Complete", "?1"), 400)
	s.want(s.draft("8", "POST", s.url, nil), 400)
	s.want(s.draft("8", "POST", s.url, bytes.NewReader(make([]byte, 101)), "Upload-Complete", "?1"), 413,
		"Upload-Limit", "max-size=100, max-age=86400")
	s.want(s.draft("8", "HEAD", s.url+strings.Repeat("a", 32), nil), 404)
	for _, version := range []string{"6", "8"} {
		s.want(s.draft(version, "POST", s.url, nil, "Upload-Complete", "1"), 400)
		url := s.want(s.draft(version, "POST", s.url, nil, "Upload-Complete", "?0"), 201).Header.Get("Location")
		patch := func(h ...string) answer {
			return s.draft(version, "PATCH", url, strings.NewReader("x"), append(h, "Upload-Complete", "?0")...)
		}
		s.want(patch("Upload-Offset", "0", "Content-Type", "text/plain"), 415)
		s.want(patch("Upload-Offset", "-1", "Content-Type", "application/partial-upload"), 400)
		untyped := map[string]int{"6": 204, "8": 415}
		s.want(patch("Upload-Offset", "0"), untyped[version])
	}
	s.Sweep(time.Now().Add(25 * time.Hour))
	s.clean()
}
