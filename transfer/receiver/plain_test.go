package receiver_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stintgo/stint/transfer/receiver"
)

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func TestPlain_Chunks(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(30, 10000)
	put := func(from, to int, h ...string) answer {
		return s.do("PUT", fmt.Sprintf("/files/a.bin/%d?size=%d", from, len(data)), bytes.NewReader(data[from:to]), h...)
	}
	s.want(put(6000, 10000, "Content-Digest", digest(data[6000:])), 201)
	s.want(put(0, 3000, "Content-Digest", digest(data[1:])), 460)
	s.want(put(0, 3000), 201)
	s.want(put(0, 3000), 200) // it is there already
	s.want(put(2000, 6000), 409)
	s.want(s.do("PUT", "/files/a.bin/0?size=9", bytes.NewReader(data)), 409)
	s.want(s.do("PUT", "/files/b/5?size=9", bytes.NewReader(data)), 400)
	s.want(s.do("PUT", "/files/b/5", bytes.NewReader(data)), 400)
	if a := s.want(s.do("GET", "/files/a.bin/", nil), 200); a.body !=
		`{"size":10000,"merged":false,"received":[[0,3000],[6000,10000]]}`+"\n" {
		t.Errorf("the list of chunks is %s", a.body)
	}
	s.want(s.do("POST", "/files/a.bin/merge", nil), 409)
	s.Close()
	s = openIn(t, s.dir, receiver.Config{}) // another process continues
	s.want(s.do("PUT", "/files/a.bin/3000?size=10000", bytes.NewReader(data[3000:6000])), 201)
	a := s.want(s.do("POST", "/files/a.bin/merge", nil, "Repr-Digest", digest(data)), 201)
	s.file("a.bin", data)
	s.clean()
	again := s.want(s.do("POST", "/files/a.bin/merge", nil), 201)
	if a.Header.Get("Location") != again.Header.Get("Location") {
		t.Error("merging twice made two files")
	}
	if got := s.want(s.do("GET", a.Header.Get("Location"), nil), 200); got.body != string(data) {
		t.Error("the file reads differently")
	}
}

func TestPlain_MergeVerifies(t *testing.T) {
	s := open(t, receiver.Config{})
	s.want(s.do("PUT", "/files/a/0?size=4", strings.NewReader("abcd")), 201)
	s.want(s.do("POST", "/files/a/merge", nil, "Repr-Digest", digest([]byte("abce"))), 460)
	s.names()
	s.clean()
	s.want(s.do("GET", "/files/a/", nil), 404)
	s.want(s.do("POST", "/files/a/merge", nil), 404)
}

func TestPlain_Cancel(t *testing.T) {
	s := open(t, receiver.Config{})
	s.want(s.do("PUT", "/files/a/0?size=4000000", strings.NewReader("abcd")), 201)
	s.want(s.do("DELETE", "/files/a/", nil), 204)
	s.want(s.do("DELETE", "/files/a/", nil), 404)
	s.clean()
}

func TestPlain_KeysDoNotShareNames(t *testing.T) {
	s := open(t, receiver.Config{Key: func(r *http.Request) string { return r.Header.Get("Tenant") }})
	s.want(s.do("PUT", "/files/a/0?size=4", strings.NewReader("abcd"), "Tenant", "x"), 201)
	s.want(s.do("GET", "/files/a/", nil, "Tenant", "y"), 404)
	s.want(s.do("POST", "/files/a/merge", nil, "Tenant", "y"), 404)
	s.want(s.do("POST", "/files/a/merge", nil, "Tenant", "x"), 201)
}

// TestPlain_RefusedBodies: the answer to a body that is not read reaches a client that still sends it.
func TestPlain_RefusedBodies(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(32, 8<<20)
	for range 20 {
		s.want(s.do("PUT", "/files/b.bin", bytes.NewReader(data), "Content-Digest", "sha-256=:AAAA:"), 400)
	}
	s.clean()
}

func TestPlain_Whole(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(31, 3<<20)
	s.want(s.do("PUT", "/files/a.bin", bytes.NewReader(data), "Content-Digest", digest(data)), 201)
	s.want(s.do("PUT", "/files/a.bin", bytes.NewReader(data)), 201)
	s.want(s.do("PUT", "/files/b.bin", bytes.NewReader(data), "Content-Digest", digest(data[1:])), 460)
	s.want(s.do("PUT", "/files/b.bin", bytes.NewReader(data), "Content-Digest", "sha-256=:AAAA:"), 400)
	s.want(s.do("PUT", "/files/c", nil), 201)
	s.names("a.bin", "a-2.bin", "c")
	s.file("a-2.bin", data)
	s.clean()
}

func TestDownload(t *testing.T) {
	s := open(t, receiver.Config{})
	url := s.want(s.do("PUT", "/files/page.html", strings.NewReader("<html>")), 201).Header.Get("Location")
	s.want(s.do("GET", url, nil), 200, "Content-Type", "application/octet-stream", "X-Content-Type-Options", "nosniff",
		"Content-Disposition", "attachment; filename=page.html", "Content-Security-Policy", "sandbox")
	if a := s.want(s.do("GET", url, nil, "Range", "bytes=1-4"), 206); a.body != "html" {
		t.Errorf("the range is %q", a.body)
	}
	s.want(s.do("HEAD", url, nil), 200, "Content-Length", "6")
	s.want(s.do("GET", s.create(5), nil), 404)
	s.want(s.do("GET", "/files/page.html", nil), 404) // only the ID gives access
	s.want(s.do("GET", "/elsewhere", nil), 404)
	s.want(s.do("TRACE", url, nil), 405)
}

// TestPlain_ChunkOfAnotherContent: a chunk that is there is not taken for another one, whose digest differs: the file
// would be a mixture of two.
func TestPlain_ChunkOfAnotherContent(t *testing.T) {
	s := open(t, receiver.Config{})
	put := func(text string) answer {
		return s.do("PUT", "/files/a/4?size=8", strings.NewReader(text), "Content-Digest", digest([]byte(text)))
	}
	s.want(put("old!"), 201)
	s.want(put("old!"), 200)
	if a := s.want(put("new!"), 409); !strings.Contains(a.body, "DELETE") {
		t.Errorf("the refusal does not say what to do: %s", a.body)
	}
	s.want(s.do("DELETE", "/files/a/", nil), 204)
	s.want(put("new!"), 201)
}

// TestPlain_EmptyChunk: a chunk of 0 bytes overlaps no other.
func TestPlain_EmptyChunk(t *testing.T) {
	s := open(t, receiver.Config{})
	s.want(s.do("PUT", "/files/a/5?size=10", nil), 201)
	s.want(s.do("PUT", "/files/a/0?size=10", strings.NewReader("0123456789")), 201)
	s.want(s.do("PUT", "/files/a/7?size=10", nil), 201)
	s.want(s.do("POST", "/files/a/merge", nil), 201)
	s.file("a", []byte("0123456789"))
	s.clean()
}
