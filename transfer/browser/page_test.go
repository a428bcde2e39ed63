package browser_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stintgo/stint/transfer/browser"
)

// answer is what the page answers to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

func get(t *testing.T, h http.Handler, method, path string, header ...string) answer {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return answer{status: w.Code, header: w.Header(), body: w.Body.String()}
}

func page(t *testing.T, cfg browser.Config) *browser.Page {
	t.Helper()
	p, err := browser.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPage_Files(t *testing.T) {
	p := page(t, browser.Config{})
	for path, kind := range map[string]string{
		"/":                   "text/html; charset=utf-8",
		"/page.css":           "text/css; charset=utf-8",
		"/page.js":            "text/javascript; charset=utf-8",
		"/scheduler.js":       "text/javascript; charset=utf-8",
		"/vendor/tus.min.js":  "text/javascript; charset=utf-8",
		"/vendor/tus.LICENSE": "text/plain; charset=utf-8",
		"/icon.svg":           "image/svg+xml",
	} {
		a := get(t, p, http.MethodGet, path)
		if got := a.header.Get("Content-Type"); a.status != http.StatusOK || got != kind || a.body == "" {
			t.Errorf("%s: status %d, type %q, %d bytes; want type %q", path, a.status, got, len(a.body), kind)
		}
		policy := a.header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		again := get(t, p, http.MethodGet, path, "If-None-Match", a.header.Get("ETag"))
		if again.status != http.StatusNotModified {
			t.Errorf("%s: an unchanged file is answered %d", path, again.status)
		}
	}
	for path, status := range map[string]int{"/files/": 404, "/page": 404, "/vendor/": 404, "/../page.go": 404} {
		if a := get(t, p, http.MethodGet, path); a.status != status {
			t.Errorf("%s: status %d, want %d", path, a.status, status)
		}
	}
	if a := get(t, p, http.MethodPost, "/"); a.status != http.StatusMethodNotAllowed {
		t.Errorf("POST: status %d", a.status)
	}
}

// The page has no script or style of its own, which the policy would refuse.
func TestPage_NothingInline(t *testing.T) {
	body := get(t, page(t, browser.Config{}), http.MethodGet, "/").body
	for _, inline := range []string{"<script>", "<style", "style=", "onclick", "javascript:"} {
		if strings.Contains(body, inline) {
			t.Errorf("the page contains %s", inline)
		}
	}
}

func TestPage_Config(t *testing.T) {
	for _, test := range []struct {
		cfg           browser.Config
		body, connect string
	}{
		{browser.Config{}, `<body data-endpoint="/files/">`, "connect-src 'self';"},
		{
			browser.Config{Endpoint: `/a"b/`, Token: true},
			`<body data-endpoint="/a&#34;b/" data-token>`, "connect-src 'self';",
		},
		{
			browser.Config{Endpoint: "https://up.example.com:8443/files/"},
			`<body data-endpoint="https://up.example.com:8443/files/">`, "connect-src https://up.example.com:8443;",
		},
	} {
		a := get(t, page(t, test.cfg), http.MethodGet, "/")
		policy := a.header.Get("Content-Security-Policy")
		if !strings.Contains(a.body, test.body) || !strings.Contains(policy, test.connect) {
			t.Errorf("%+v: the policy is %q, and the page\n%s", test.cfg, policy, a.body)
		}
	}
	for _, endpoint := range []string{"files/", "ftp://example.com/", "https:///files/", "//example.com/files/", ":"} {
		if _, err := browser.New(browser.Config{Endpoint: endpoint}); err == nil {
			t.Errorf("the endpoint %q is accepted", endpoint)
		}
	}
}

// tus-js-client 4.3.1 is the file that its authors have published, unchanged.
func TestPage_ClientIsUnchanged(t *testing.T) {
	body := get(t, page(t, browser.Config{}), http.MethodGet, "/vendor/tus.min.js").body
	sum := sha256.Sum256([]byte(body))
	if got := hex.EncodeToString(sum[:]); got != "8cbb1b63fccc3bba0ae73ad1deb160ce046c3750851d0c3e94921ae3ef070eb8" {
		t.Errorf("its SHA-256 is %s", got)
	}
}
