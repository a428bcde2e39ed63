package s3_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/stintgo/stint/internal/s3gateway"
)

// bucket is the bucket of the test server.
const bucket = "films"

// gateway is a Versity S3 Gateway (https://github.com/versity/versitygw), a server of another
// project, on a directory.
type gateway struct {
	url    string
	client *minio.Core
}

// newGateway starts a gateway with an empty bucket, and gives its credentials to this process.
func newGateway(t *testing.T) *gateway {
	t.Helper()
	address, _ := s3gateway.Start(t, bucket)
	client, err := minio.NewCore(address, &minio.Options{
		Creds: credentials.NewStaticV4(s3gateway.Key, s3gateway.Secret, ""), Region: s3gateway.Region,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", s3gateway.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3gateway.Secret)
	t.Setenv("AWS_SESSION_TOKEN", "")
	return &gateway{url: "http://" + address, client: client}
}

// object returns the content of an object, and what the server says about it.
func (g *gateway) object(t *testing.T, key string) ([]byte, minio.ObjectInfo) {
	t.Helper()
	r, info, _, err := g.client.GetObject(t.Context(), bucket, key, minio.GetObjectOptions{Checksum: true})
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	return content, info
}

// uploads returns the number of unfinished multipart uploads that have parts. One without parts
// is left if its client is killed before the answer arrives.
func (g *gateway) uploads(t *testing.T) int {
	t.Helper()
	return len(g.parts(t))
}

// parts returns the numbers of the parts of each unfinished multipart upload that has some.
func (g *gateway) parts(t *testing.T) (all []map[string]bool) {
	t.Helper()
	list, err := g.client.ListMultipartUploads(t.Context(), bucket, "", "", "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range list.Uploads {
		parts, err := g.client.ListObjectParts(t.Context(), bucket, u.Key, u.UploadID, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		numbers := make(map[string]bool)
		for _, part := range parts.ObjectParts {
			numbers[strconv.Itoa(part.PartNumber)] = true
		}
		if len(numbers) > 0 {
			all = append(all, numbers)
		}
	}
	return all
}

// front is a proxy of a gateway that counts and disturbs requests.
type front struct {
	url   string
	proxy *httputil.ReverseProxy

	// Set before the first request.
	fault func(w http.ResponseWriter, r *http.Request) bool // may answer instead of the gateway, if it returns true
	body  func(r *http.Request, body io.Reader) io.Reader   // replaces the body of a part

	bytes, parts atomic.Int64 // of parts
}

func newFront(t *testing.T, g *gateway) *front {
	t.Helper()
	at, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{proxy: &httputil.ReverseProxy{
		// The Host stays that of the client, because the signature has it.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = at.Scheme, at.Host, r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// hold keeps the requests with a part number from going on until release is called, or the test
// ends. They fail then; later ones pass. arrived is closed when the first is there. It must be
// called before the first request.
func (f *front) hold(t *testing.T, number string) (arrived <-chan struct{}, release func()) {
	t.Helper()
	there, released := make(chan struct{}), make(chan struct{})
	var first, last sync.Once
	release = func() { last.Do(func() { close(released) }) }
	t.Cleanup(release)
	f.body = func(r *http.Request, body io.Reader) io.Reader {
		select {
		case <-released:
			return body
		default:
		}
		if r.URL.Query().Get("partNumber") != number {
			return body
		}
		first.Do(func() { close(there) })
		return readerFunc(func([]byte) (int, error) {
			<-released
			return 0, io.ErrUnexpectedEOF
		})
	}
	return there, release
}

// ServeHTTP is as http.Handler says.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.fault != nil && f.fault(w, r) {
		return
	}
	if isPart(r) {
		f.parts.Add(1)
		body := io.Reader(r.Body)
		if f.body != nil {
			body = f.body(r, body)
		}
		r.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
			n, err := body.Read(p)
			f.bytes.Add(int64(n))
			return n, err
		}))
	}
	f.forward(w, r)
}

// forward passes a request on. A client that is gone makes ReverseProxy panic.
func (f *front) forward(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // it is compared in net/http, too
			panic(p)
		}
	}()
	f.proxy.ServeHTTP(w, r)
}

// isPart reports whether a request sends a part.
func isPart(r *http.Request) bool {
	return r.Method == http.MethodPut && r.URL.Query().Has("partNumber")
}

// isComplete reports whether a request completes an upload.
func isComplete(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
}

type readerFunc func(p []byte) (int, error)

// Read is as io.Reader says.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// waiting is the time for which a test waits for a state.
const waiting = 2 * time.Minute

// bounded returns a context for a wait.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), waiting)
	t.Cleanup(stop)
	return ctx
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
