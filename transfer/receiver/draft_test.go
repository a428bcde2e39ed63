package receiver_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
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
	s := open(t, receiver.Config{MaxSize: 5000})
	data := content(22, 5000)
	stream := struct{ io.Reader }{bytes.NewReader(data)} // sent in chunks without a length
	s.want(s.draft("8", "PUT", s.url+"a", stream, "Upload-Complete", "?1"), 201, "Upload-Complete", "?1")
	s.file("a", data)
	stream = struct{ io.Reader }{bytes.NewReader(append(data, 'x'))}
	a := s.want(s.draft("8", "PUT", s.url+"b", stream, "Upload-Complete", "?1"), 413, "Upload-Complete", "?0")
	s.want(s.draft("8", "DELETE", a.Header.Get("Location"), nil), 204)
	s.want(s.draft("8", "HEAD", a.Header.Get("Location"), nil), 404)
	s.names("a")
	s.clean()
}

func TestDraft_ReprDigest(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(23, 5000)
	sum := sha256.Sum256(data)
	digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	s.want(s.draft("8", "PUT", s.url+"a", bytes.NewReader(data), "Upload-Complete", "?1", "Repr-Digest", digest), 201)
	s.want(s.draft("8", "PUT", s.url+"b", bytes.NewReader(data[1:]), "Upload-Complete", "?1", "Repr-Digest", digest), 460)
	s.names("a")
	s.clean()
}

func TestDraft_Refused(t *testing.T) {
	s := open(t, receiver.Config{MaxSize: 100})
	s.want(s.do("OPTIONS", s.url, nil), 204, "Accept-Patch", "application/partial-upload, application/offset+octet-stream",
		"Upload-Limit", "max-size=100, max-age=86400")
	s.want(s.draft("3", "POST", s.url, nil, "Upload-Complete", "?1"), 400)
	s.want(s.draft("8", "POST", s.url, nil, "Upload-Complete", "1"), 400)
	s.want(s.draft("8", "POST", s.url, nil), 400)
	s.want(s.draft("8", "POST", s.url, bytes.NewReader(make([]byte, 101)), "Upload-Complete", "?1"), 413)
	s.want(s.draft("8", "HEAD", s.url+strings.Repeat("a", 32), nil), 404)
	url := s.want(s.draft("8", "POST", s.url, nil, "Upload-Complete", "?0"), 201).Header.Get("Location")
	s.want(s.draft("8", "PATCH", url, strings.NewReader("x"), "Upload-Offset", "0", "Upload-Complete", "?0"), 415)
	s.want(s.draft("6", "PATCH", url, strings.NewReader("x"), "Upload-Offset", "0", "Upload-Complete", "?0"), 204)
	s.want(s.draft("8", "PATCH", url, strings.NewReader("x"), "Upload-Offset", "-1", "Upload-Complete", "?0",
		"Content-Type", "application/partial-upload"), 400)
	s.Sweep(time.Now().Add(25 * time.Hour))
	s.clean()
}
