package receiver_test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint/transfer/receiver"
)

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func filename(name string) string { return "filename " + b64(name) }

// checksum returns the value of an Upload-Checksum.
func checksum(alg string, body []byte) string {
	h := map[string]hash.Hash{
		"sha256": sha256.New(), "sha1": sha1.New(), "md5": md5.New(), "crc32": crc32.NewIEEE(),
		"crc32c": crc32.New(crc32.MakeTable(crc32.Castagnoli)),
	}[alg]
	h.Write(body)
	return alg + " " + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

func TestTus_Core(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(1, 3<<20)
	url := s.create(len(data), "Upload-Metadata", filename("a.bin")+",is_confidential")
	s.want(s.tus("HEAD", url, nil), 200, "Upload-Offset", "0", "Upload-Length", fmt.Sprint(len(data)),
		"Upload-Metadata", filename("a.bin")+",is_confidential", "Cache-Control", "no-store", "Tus-Resumable", "1.0.0")
	s.want(s.patch(url, 0, data[:1000]), 204, "Upload-Offset", "1000", "Tus-Resumable", "1.0.0")
	s.want(s.patch(url, 999, data[999:]), 409, "Upload-Offset", "1000")
	s.want(s.tus("PATCH", url, bytes.NewReader(data), "Upload-Offset", "1000"), 415)
	s.want(s.patch(url, 1000, data[1000:]), 204, "Upload-Offset", fmt.Sprint(len(data)))
	s.file("a.bin", data)
	s.clean()
	s.want(s.tus("HEAD", url, nil), 200, "Upload-Offset", fmt.Sprint(len(data)))
	s.want(s.patch(url, len(data), nil), 204)
	s.want(s.patch(url, len(data), []byte("x")), 413)
	s.want(s.do("PATCH", url, nil, "Tus-Resumable", "0.2.2"), 412, "Tus-Version", "1.0.0")
	s.want(s.tus("HEAD", s.url+strings.Repeat("0", 32), nil), 404)
}

func TestTus_MethodOverride(t *testing.T) {
	s := open(t, receiver.Config{})
	url := s.create(3, "Upload-Metadata", filename("a"))
	s.want(s.tus("POST", url, strings.NewReader("abc"), "X-HTTP-Method-Override", "PATCH", "Upload-Offset", "0",
		"Content-Type", "application/offset+octet-stream"), 204)
	s.file("a", []byte("abc"))
}

func TestTus_Options(t *testing.T) {
	s := open(t, receiver.Config{MaxSize: 1000})
	s.want(s.do("OPTIONS", s.url, nil), 204, "Tus-Version", "1.0.0", "Tus-Max-Size", "1000",
		"Tus-Checksum-Algorithm", "sha256,sha1,md5,crc32,crc32c", "Tus-Extension",
		"creation,creation-with-upload,creation-defer-length,termination,checksum,checksum-trailer,expiration,concatenation")
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "1001"), 413)
	s.want(s.tus("POST", s.url, nil), 400)
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "-1"), 400)
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "10", "Upload-Metadata", "filename %%"), 400)
	s.clean()
}

func TestTus_CreationWithUpload(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(2, 5000)
	const kind = "application/offset+octet-stream"
	a := s.want(s.tus("POST", s.url, bytes.NewReader(data[:2000]), "Content-Type", kind, "Upload-Length", "5000",
		"Upload-Metadata", filename("a")), 201, "Upload-Offset", "2000")
	s.want(s.patch(a.Header.Get("Location"), 2000, data[2000:]), 204)
	s.file("a", data)
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "0", "Upload-Metadata", filename("empty")), 201)
	s.file("empty", nil)
	a = s.want(s.tus("POST", s.url, bytes.NewReader(data), "Content-Type", kind, "Upload-Length", "5000",
		"Upload-Checksum", checksum("sha1", data[1:])), 460)
	if a.Header.Get("Location") != "" {
		t.Error("a creation that failed has a Location")
	}
	s.names("a", "empty")
	s.clean()
}

func TestTus_DeferLength(t *testing.T) {
	s := open(t, receiver.Config{MaxSize: 10000})
	data := content(3, 5000)
	a := s.want(s.tus("POST", s.url, nil, "Upload-Defer-Length", "1", "Upload-Metadata", filename("a")), 201)
	url := a.Header.Get("Location")
	s.want(s.patch(url, 0, data[:100]), 204, "Upload-Offset", "100")
	s.want(s.tus("HEAD", url, nil), 200, "Upload-Defer-Length", "1", "Upload-Length", "")
	s.want(s.patch(url, 100, data[100:200], "Upload-Length", "50"), 400)
	s.want(s.patch(url, 100, data[100:200], "Upload-Length", "10001"), 413)
	s.want(s.patch(url, 100, make([]byte, 10000)), 413)
	s.want(s.patch(url, 100, data[100:200], "Upload-Length", "150"), 413) // which does not set the length
	s.want(s.patch(url, 100, data[100:200], "Upload-Length", "5000"), 204)
	s.want(s.patch(url, 200, data[200:300], "Upload-Length", "5001"), 400)
	s.want(s.patch(url, 200, data[200:]), 204)
	s.file("a", data)
	s.want(s.tus("POST", s.url, nil, "Upload-Defer-Length", "2"), 400)
	s.want(s.tus("POST", s.url, nil, "Upload-Defer-Length", "1", "Upload-Length", "4"), 400)
	s.clean()
}

func TestTus_Termination(t *testing.T) {
	s := open(t, receiver.Config{})
	url := s.create(1 << 20)
	s.want(s.patch(url, 0, content(4, 1000)), 204)
	s.want(s.tus("DELETE", url, nil), 204)
	s.want(s.tus("DELETE", url, nil), 404)
	s.want(s.tus("HEAD", url, nil), 404)
	s.clean()
}

func TestTus_Checksum(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(5, 4<<20)
	url := s.create(len(data), "Upload-Metadata", filename("a"))
	half := len(data) / 2
	s.want(s.patch(url, 0, data[:half], "Upload-Checksum", checksum("sha256", data[1:])), 460)
	if got := s.offset(url); got != 0 {
		t.Errorf("after a wrong checksum the offset is %d", got)
	}
	s.want(s.patch(url, 0, data[:half], "Upload-Checksum", checksum("sha1", data[:half])), 204)
	s.want(s.patch(url, half, data[half:], "Upload-Checksum", "sha3 AAAA"), 400)
	s.want(s.patch(url, half, data[half:], "Upload-Checksum", "sha1 AAAA"), 400)
	s.want(s.patch(url, half, data[:half], "Upload-Checksum", checksum("sha256", data[half:])), 460)
	s.want(s.patch(url, half, data[half:], "Upload-Checksum", checksum("sha256", data[half:])), 204)
	s.file("a", data)
	// The check value of CRC-32/ISCSI in the catalogue of parametrised CRC algorithms is E3069283.
	digits := []byte("123456789")
	url = s.create(len(digits), "Upload-Metadata", filename("digits"))
	s.want(s.patch(url, 0, []byte("123456788"), "Upload-Checksum", "crc32c 4waSgw=="), 460)
	s.want(s.patch(url, 0, digits, "Upload-Checksum", "crc32c 4waSgw=="), 204)
	s.file("digits", digits)
	s.clean()
}

// trailing sends a request of tus with a body in chunks and a trailer, whose value is set after the
// body; "" leaves it out.
func (s *site) trailing(method, url string, body []byte, value string, h ...string) answer {
	s.tb.Helper()
	if !strings.HasPrefix(url, "http") {
		url = strings.TrimSuffix(s.url, "/files/") + url
	}
	trailer := http.Header{"Upload-Checksum": nil}
	end := readerFunc(func([]byte) (int, error) {
		if value != "" {
			trailer.Set("Upload-Checksum", value)
		}
		return 0, io.EOF
	})
	req, err := http.NewRequestWithContext(s.tb.Context(), method, url, io.MultiReader(bytes.NewReader(body), end))
	if err != nil {
		s.tb.Fatal(err)
	}
	req.Trailer = trailer
	req.Header.Set("Tus-Resumable", "1.0.0")
	req.Header.Set("Content-Type", "application/offset+octet-stream")
	for i := 0; i < len(h); i += 2 {
		req.Header.Set(h[i], h[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		s.tb.Fatal(err)
	}
	return answer{Response: resp, body: string(said)}
}

// readerFunc is a function as an io.Reader.
type readerFunc func([]byte) (int, error)

// Read calls the function.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestTus_ChecksumTrailer(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(8, 4<<20)
	half := len(data) / 2
	url := s.create(len(data), "Upload-Metadata", filename("a"))
	for _, c := range []struct {
		value  string
		status int
		h      []string
	}{
		{value: checksum("sha256", data[1:]), status: 460},
		{value: "", status: 400},
		{value: "sha3 AAAA", status: 400},
		{value: checksum("sha1", data[:half]), status: 400, h: []string{"Upload-Checksum", checksum("sha1", data[:half])}},
	} {
		s.want(s.trailing("PATCH", url, data[:half], c.value, append(c.h, "Upload-Offset", "0")...), c.status)
		if got := s.offset(url); got != 0 {
			t.Fatalf("after the trailer %q the offset is %d", c.value, got)
		}
	}
	s.want(s.trailing("PATCH", url, data[:half], checksum("sha1", data[:half]), "Upload-Offset", "0"), 204)
	// The checksum is that of the body, and not of what the upload had before.
	rest := checksum("md5", data[half:])
	s.want(s.trailing("PATCH", url, data[half:], rest, "Upload-Offset", strconv.Itoa(half)), 204)
	s.file("a", data)
	h := []string{"Upload-Length", strconv.Itoa(len(data)), "Upload-Metadata", filename("b")}
	a := s.want(s.trailing("POST", s.url, data, checksum("crc32", data[1:]), h...), 460)
	if a.Header.Get("Location") != "" {
		t.Error("a creation that failed has a Location")
	}
	s.want(s.trailing("POST", s.url, data, checksum("crc32", data), h...), 201)
	s.file("b", data)
	h[3] = filename("c")
	s.want(s.trailing("POST", s.url, data, checksum("crc32c", data[1:]), h...), 460)
	s.want(s.trailing("POST", s.url, data, checksum("crc32c", data), h...), 201)
	s.file("c", data)
	s.clean()
}

func TestTus_WholeSHA256(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(6, 3<<20)
	sum := sha256.Sum256(data)
	meta := func(name string) string { return filename(name) + ",sha256 " + b64(hex.EncodeToString(sum[:])) }
	url := s.create(len(data), "Upload-Metadata", meta("right"))
	s.want(s.patch(url, 0, data[:2<<20]), 204)
	s.want(s.patch(url, 2<<20, data[2<<20:], "Upload-Checksum", checksum("sha1", data)), 460)
	s.want(s.patch(url, 2<<20, data[2<<20:]), 204)
	s.file("right", data)
	url = s.create(len(data), "Upload-Metadata", meta("wrong"))
	wrong := bytes.Clone(data)
	wrong[5] ^= 1
	s.want(s.patch(url, 0, wrong), 460)
	s.want(s.tus("HEAD", url, nil), 404)
	s.names("right")
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "3", "Upload-Metadata", "sha256 "+b64("abc")), 400)
	s.clean()
}

// TestTus_WholeSHA256AfterAFailedRecord: bytes that have been summed, and then were not
// recorded, are not summed again.
func TestTus_WholeSHA256AfterAFailedRecord(t *testing.T) {
	const recordMax = 200 // bytes
	var broken atomic.Bool
	s := open(t, receiver.WithFault(receiver.Config{}, func(op string, n int) (int, error) {
		if broken.Load() && op == "write" && n < recordMax {
			return 0, errors.New("broken")
		}
		return 0, nil
	}))
	data := content(11, 3000)
	sum := sha256.Sum256(data)
	url := s.create(len(data), "Upload-Metadata", filename("a")+",sha256 "+b64(hex.EncodeToString(sum[:])))
	s.want(s.patch(url, 0, data[:1000]), 204)
	broken.Store(true)
	s.want(s.patch(url, 1000, data[1000:2000]), 500)
	broken.Store(false)
	s.want(s.patch(url, s.offset(url), data[1000:]), 204)
	s.file("a", data)
	s.clean()
}

// TestE4_OpenAfterADay: an upload whose time was over while no receiver ran has an hour.
func TestE4_OpenAfterADay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	s := openIn(t, dir, receiver.Config{})
	url := s.create(8)
	s.want(s.patch(url, 0, []byte("half")), 204)
	s.Close()
	old := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, ".uploads", filepath.Base(url)+".log"), old, old); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, dir, receiver.Config{})
	s.Sweep(time.Now().Add(55 * time.Minute))
	s.want(s.tus("HEAD", url, nil), 200, "Upload-Offset", "4")
	s.Sweep(time.Now().Add(65 * time.Minute))
	s.want(s.tus("HEAD", url, nil), 404)
	s.clean()
}

func TestTus_Expiration(t *testing.T) {
	s := open(t, receiver.Config{Expiry: time.Hour})
	url := s.create(1000)
	a := s.want(s.patch(url, 0, content(7, 10)), 204)
	at, err := http.ParseTime(a.Header.Get("Upload-Expires"))
	if left := time.Until(at); err != nil || left < 50*time.Minute || left > 61*time.Minute {
		t.Errorf("the upload expires at %q", a.Header.Get("Upload-Expires"))
	}
	done := s.create(4, "Upload-Metadata", filename("done"))
	s.want(s.patch(done, 0, []byte("done")), 204)
	s.Sweep(time.Now().Add(59 * time.Minute))
	s.want(s.tus("HEAD", url, nil), 200)
	s.Sweep(time.Now().Add(61 * time.Minute))
	s.want(s.tus("HEAD", url, nil), 404)
	s.want(s.tus("HEAD", done, nil), 404)
	s.names("done") // the file stays; only its receipt expires
	s.clean()
	if left := list(t, s.dir+"/.uploads"); len(left) != 1 {
		t.Errorf("left are %q", left)
	}
}

// parts uploads content in pieces as partial uploads.
func (s *site) parts(data []byte, pieces int, meta func(offset, length int) string) (urls []string) {
	s.tb.Helper()
	size := len(data) / pieces
	for i := range pieces {
		from, to := i*size, (i+1)*size
		if i == pieces-1 {
			to = len(data)
		}
		h := []string{"Upload-Concat", "partial"}
		if meta != nil {
			h = append(h, "Upload-Metadata", meta(from, to-from))
		}
		url := s.create(to-from, h...)
		s.want(s.patch(url, 0, data[from:to]), 204)
		urls = append(urls, url)
	}
	return urls
}

func TestTus_ConcatenationOfForeignParts(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(8, 5<<20+77)
	urls := s.parts(data, 4, nil)
	s.want(s.tus("HEAD", urls[1], nil), 200, "Upload-Concat", "partial")
	s.want(s.tus("POST", s.url, nil, "Upload-Concat", "final;"+urls[0]+" "+urls[0]), 400)
	s.want(s.tus("POST", s.url, nil, "Upload-Concat", "final;"+s.url+"x"), 404)
	open := s.create(10, "Upload-Concat", "partial")
	s.want(s.tus("POST", s.url, nil, "Upload-Concat", "final;"+urls[0]+" "+open), 409)
	s.want(s.tus("DELETE", open, nil), 204)
	final := "final;" + strings.Join(urls, " ")
	a := s.want(s.tus("POST", s.url, nil, "Upload-Concat", final, "Upload-Metadata", filename("whole")), 201)
	s.file("whole", data)
	s.clean()
	again := s.want(s.tus("POST", s.url, nil, "Upload-Concat", final, "Upload-Metadata", filename("whole")), 201)
	if a.Header.Get("Location") != again.Header.Get("Location") {
		t.Error("the same concatenation twice made two files")
	}
	s.want(s.tus("HEAD", a.Header.Get("Location"), nil), 200,
		"Upload-Length", fmt.Sprint(len(data)), "Upload-Concat", final)
	s.want(s.patch(a.Header.Get("Location"), len(data), []byte("x")), 403)
	s.names("whole")
}

func TestTus_ConcatenationInPlace(t *testing.T) {
	s := open(t, receiver.Config{})
	data := content(9, 5<<20+77)
	group := "group-0123456789abcdef"
	urls := s.parts(data, 4, func(offset, _ int) string {
		return "part-of " + b64(fmt.Sprintf("%s %d %d", group, offset, len(data)))
	})
	if got := s.orphans(); got != int64(len(data)) {
		t.Errorf("the parts take %d bytes, want %d in one file", got, len(data))
	}
	// The same part again is the same upload; one that overlaps is refused.
	if again := s.create(len(data)/4, "Upload-Concat", "partial", "Upload-Metadata",
		"part-of "+b64(fmt.Sprintf("%s 0 %d", group, len(data)))); again != urls[0] {
		t.Errorf("the part got the path %s, and %s when asked again", urls[0], again)
	}
	// The body of a creation that is repeated is not appended again.
	s.want(s.tus("POST", s.url, bytes.NewReader(data[:10]), "Content-Type", "application/offset+octet-stream",
		"Upload-Length", fmt.Sprint(len(data)/4), "Upload-Concat", "partial", "Upload-Metadata",
		"part-of "+b64(fmt.Sprintf("%s 0 %d", group, len(data)))), 201, "Upload-Offset", fmt.Sprint(len(data)/4))
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "9", "Upload-Concat", "partial", "Upload-Metadata",
		"part-of "+b64(fmt.Sprintf("%s 5 %d", group, len(data)))), 409)
	s.want(s.tus("POST", s.url, nil, "Upload-Length", "9", "Upload-Concat", "partial", "Upload-Metadata",
		"part-of "+b64(fmt.Sprintf("%s 5 7", group))), 400)
	s.want(s.tus("POST", s.url, nil, "Upload-Concat", "final;"+urls[0]+" "+urls[2]), 400)
	s.want(s.tus("POST", s.url, nil, "Upload-Concat", "final;"+urls[0]+" "+urls[1]), 400)
	sum := sha256.Sum256(data)
	a := s.want(s.tus("POST", s.url, nil, "Upload-Concat", "final;"+strings.Join(urls, " "), "Upload-Metadata",
		filename("whole")+",sha256 "+b64(hex.EncodeToString(sum[:]))), 201)
	s.file("whole", data)
	s.clean()
	s.want(s.do("GET", a.Header.Get("Location"), nil, "Range", "bytes=5-6"), 206, "Content-Range",
		fmt.Sprintf("bytes 5-6/%d", len(data)))
}

// TestTus_EmptyPatchOfFinishedUpload: the client that has lost the answer to its last bytes sends 0 bytes behind them.
// Also a body whose length no header gives has 0 bytes, by HTTP/1.1 (chunked) and by HTTP/2.
func TestTus_EmptyPatchOfFinishedUpload(t *testing.T) {
	for _, version := range []int{1, 2} {
		r, err := receiver.Open(filepath.Join(t.TempDir(), "uploads"), receiver.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		server := httptest.NewUnstartedServer(r)
		server.EnableHTTP2 = version == 2
		server.StartTLS()
		defer server.Close()
		send := func(method, url, body string, h ...string) answer {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), method, url, struct{ io.Reader }{strings.NewReader(body)})
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(h); i += 2 {
				req.Header.Set(h[i], h[i+1])
			}
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return answer{Response: resp}
		}
		at := server.URL + send("POST", server.URL+"/files/", "", "Tus-Resumable", "1.0.0", "Upload-Length", "4").
			Header.Get("Location")
		patch := func(body, offset string, want int) {
			t.Helper()
			resp := send("PATCH", at, body, "Tus-Resumable", "1.0.0", "Upload-Offset", offset,
				"Content-Type", "application/offset+octet-stream")
			if resp.StatusCode != want || resp.ProtoMajor != version {
				t.Errorf("%s: PATCH of %q at %s: status %d, want %d", resp.Proto, body, offset, resp.StatusCode, want)
			}
		}
		patch("four", "0", 204)
		patch("", "4", 204)
		patch("x", "4", 413)
	}
}
