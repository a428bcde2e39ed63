package transfer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// allExtensions are those of the test server.
const allExtensions = "creation,creation-defer-length,concatenation,checksum,termination"

// tusServer is a small tus server that keeps uploads in memory. Without a checksum it keeps
// what it has received of a request that broke; with one it keeps all or nothing.
type tusServer struct {
	http *httptest.Server

	// Set before the first request.
	extensions string
	algorithms string // of checksums
	maxSize    int64
	// fault may answer a request instead of the server, if it returns true.
	fault func(w http.ResponseWriter, r *http.Request) bool
	// content replaces the body of a PATCH.
	content func(r *http.Request, body io.Reader) io.Reader

	mu       sync.Mutex
	uploads  map[string]*stored
	created  int
	received int64    // bytes of bodies
	requests []string // methods and paths
	headers  []http.Header
}

// stored is an upload at the server.
type stored struct {
	data     []byte
	length   int64 // -1 if it is not known
	metadata map[string]string
	partial  bool
	final    bool
	writer   int // the number of PATCH requests: a new one takes the upload over
}

func newTusServer(t *testing.T) *tusServer {
	t.Helper()
	s := &tusServer{extensions: allExtensions, algorithms: "sha1,sha256", uploads: make(map[string]*stored)}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

// url is the endpoint.
func (s *tusServer) url() string { return s.http.URL + "/files/" }

// ServeHTTP is as http.Handler says.
func (s *tusServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	s.headers = append(s.headers, r.Header.Clone())
	s.mu.Unlock()
	w.Header().Set("Tus-Resumable", "1.0.0")
	if s.fault != nil && s.fault(w, r) {
		return
	}
	id, ok := strings.CutPrefix(r.URL.Path, "/files/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	if id == "" {
		s.serveEndpoint(w, r)
		return
	}
	s.mu.Lock()
	u := s.uploads[id]
	s.mu.Unlock()
	if u == nil {
		http.NotFound(w, r)
		return
	}
	switch r.Method {
	case http.MethodHead:
		s.mu.Lock()
		defer s.mu.Unlock()
		u.writer++ // a request that is under way appends nothing more
		w.Header().Set("Upload-Offset", strconv.Itoa(len(u.data)))
		if u.length >= 0 {
			w.Header().Set("Upload-Length", strconv.FormatInt(u.length, 10))
		}
	case http.MethodPatch:
		s.patch(w, r, u)
	case http.MethodDelete:
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (s *tusServer) serveEndpoint(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method {
	case http.MethodOptions:
		w.Header().Set("Tus-Version", "1.0.0")
		w.Header().Set("Tus-Extension", s.extensions)
		w.Header().Set("Tus-Checksum-Algorithm", s.algorithms)
		if s.maxSize > 0 {
			w.Header().Set("Tus-Max-Size", strconv.FormatInt(s.maxSize, 10))
		}
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		u, status := s.createLocked(r)
		if status == http.StatusCreated {
			s.created++
			id := fmt.Sprintf("u%d", s.created)
			s.uploads[id] = u
			w.Header().Set("Location", "/files/"+id)
		}
		w.WriteHeader(status)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (s *tusServer) createLocked(r *http.Request) (*stored, int) {
	u := &stored{length: -1, metadata: make(map[string]string)}
	for pair := range strings.SplitSeq(r.Header.Get("Upload-Metadata"), ",") {
		key, encoded, _ := strings.Cut(pair, " ")
		value, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, http.StatusBadRequest
		}
		u.metadata[key] = string(value)
	}
	kind := r.Header.Get("Upload-Concat")
	if parts, ok := strings.CutPrefix(kind, "final;"); ok {
		u.final = true
		for part := range strings.SplitSeq(parts, " ") {
			p := s.uploads[part[strings.LastIndex(part, "/")+1:]]
			if p == nil || !p.partial || int64(len(p.data)) != p.length {
				return nil, http.StatusBadRequest
			}
			u.data = append(u.data, p.data...)
		}
		u.length = int64(len(u.data))
		return u, s.verify(u, http.StatusCreated)
	}
	u.partial = kind == "partial"
	if r.Header.Get("Upload-Defer-Length") == "1" {
		return u, http.StatusCreated
	}
	length, err := strconv.ParseInt(r.Header.Get("Upload-Length"), 10, 64)
	if err != nil || length < 0 {
		return nil, http.StatusBadRequest
	}
	u.length = length
	return u, http.StatusCreated
}

// verify returns the status of an upload that is complete.
func (s *tusServer) verify(u *stored, status int) int {
	sum := sha256.Sum256(u.data)
	if want := u.metadata["sha256"]; want != "" && want != hex.EncodeToString(sum[:]) {
		return 460
	}
	return status
}

func (s *tusServer) patch(w http.ResponseWriter, r *http.Request, u *stored) {
	body := io.Reader(r.Body)
	if s.content != nil {
		body = s.content(r, body)
	}
	s.mu.Lock()
	offset, err := strconv.Atoi(r.Header.Get("Upload-Offset"))
	u.writer++
	writer := u.writer
	conflict := err != nil || offset != len(u.data)
	if length, err := strconv.ParseInt(r.Header.Get("Upload-Length"), 10, 64); err == nil && u.length < 0 {
		u.length = length
	}
	s.mu.Unlock()
	if conflict {
		w.WriteHeader(http.StatusConflict)
		return
	}
	algorithm, sum, checked := strings.Cut(r.Header.Get("Upload-Checksum"), " ")
	data, err := s.receive(body, u, writer, !checked)
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.writer != writer {
		w.WriteHeader(http.StatusConflict)
		return
	}
	if checked {
		h := map[string]hash.Hash{"sha256": sha256.New(), "crc32c": crc32.New(crc32.MakeTable(crc32.Castagnoli))}[algorithm]
		h.Write(data)
		if err != nil || base64.StdEncoding.EncodeToString(h.Sum(nil)) != sum {
			w.WriteHeader(460)
			return
		}
		u.data = append(u.data, data...)
	}
	if err != nil || u.length >= 0 && int64(len(u.data)) > u.length {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Upload-Offset", strconv.Itoa(len(u.data)))
	status := http.StatusNoContent
	if int64(len(u.data)) == u.length {
		status = s.verify(u, status)
	}
	w.WriteHeader(status)
}

// receive reads a body. It appends what it reads to the upload if keep is set and
// no later request has taken the upload over.
func (s *tusServer) receive(body io.Reader, u *stored, writer int, keep bool) ([]byte, error) {
	var all []byte
	buffer := make([]byte, 16<<10)
	for {
		n, err := body.Read(buffer)
		s.mu.Lock()
		s.received += int64(n)
		if keep && u.writer == writer {
			u.data = append(u.data, buffer[:n]...)
		}
		s.mu.Unlock()
		if !keep {
			all = append(all, buffer[:n]...)
		}
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// at returns the upload of a URL.
func (s *tusServer) at(url string) *stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uploads[url[strings.LastIndex(url, "/")+1:]]
}

// file returns the content of the upload with a filename, and whether it is complete. A file
// that came in parts is complete when it is concatenated.
func (s *tusServer) file(name string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.uploads {
		if u.metadata["filename"] == name && int64(len(u.data)) == u.length {
			return slices.Clone(u.data), true
		}
	}
	return nil, false
}

// has checks that the server has a file with a content.
func (s *tusServer) has(t *testing.T, name string, want []byte) {
	t.Helper()
	got, ok := s.file(name)
	if !ok || !bytes.Equal(got, want) {
		t.Errorf("the server has %s: %t, %d bytes, equal: %t; want %d bytes", name, ok, len(got), bytes.Equal(got, want),
			len(want))
	}
}

// bytes returns the number of bytes of all bodies.
func (s *tusServer) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received
}

// count returns the number of requests with a method.
func (s *tusServer) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if strings.HasPrefix(r, method+" ") {
			n++
		}
	}
	return n
}
