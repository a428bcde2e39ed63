package browser

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"time"
)

//go:embed page
var pageFiles embed.FS

// Config configures a [Page]. The zero value is a good default.
type Config struct {
	// Endpoint is the URL at which uploads are created: a path of the server that has the page,
	// or a URL with a host, whose server must allow the origin of the page
	// ([github.com/stintgo/stint/transfer/receiver.Config.Origins]). "" means "/files/".
	Endpoint string
	// Token makes the page ask for a token before the first request. It is sent in the header
	// Authorization: Bearer TOKEN, and kept in the sessionStorage of the browser's tab. A handler in
	// front of the endpoint has to check it.
	Token bool
}

// Page serves the upload page and its modules. It is an [http.Handler], safe for concurrent use. All URLs
// in the page are relative, so it can be mounted at any path that ends in a slash, with
// [http.StripPrefix].
type Page struct {
	files  map[string]file // by path, with a leading slash
	policy string          // the Content-Security-Policy
}

// file is what one path of a page answers.
type file struct {
	content []byte
	kind    string // the Content-Type
	tag     string // the ETag
}

var _ http.Handler = (*Page)(nil)

// kindsTable has the Content-Type of each extension. The one of the machine may differ, and browsers do not
// run modules of another type.
var kindsTable = map[string]string{
	".html":    "text/html; charset=utf-8",
	".css":     "text/css; charset=utf-8",
	".js":      "text/javascript; charset=utf-8",
	".svg":     "image/svg+xml",
	".LICENSE": "text/plain; charset=utf-8",
}

// New returns a page. It fails if the endpoint is not a path or an http or https URL.
func New(cfg Config) (*Page, error) {
	cfg.Endpoint = cmp.Or(cfg.Endpoint, "/files/")
	connect, err := origin(cfg.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("browser: endpoint %q: %w", cfg.Endpoint, err)
	}
	p := &Page{
		files: map[string]file{},
		policy: "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src " + connect +
			"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
	err = fs.WalkDir(pageFiles, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := pageFiles.ReadFile(name)
		if err != nil {
			return err
		}
		p.add(name[len("page"):], content)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, p.addIndex(cfg)
}

// origin returns the source of a Content-Security-Policy that allows requests to an endpoint.
func origin(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return "", err
	case u.Scheme == "" && u.Host == "" && path.IsAbs(u.Path):
		return "'self'", nil
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return u.Scheme + "://" + u.Host, nil
	}
	return "", errors.New("it must be a path such as /files/, or a URL such as https://example.com/files/")
}

func (p *Page) add(name string, content []byte) {
	sum := sha256.Sum256(content)
	p.files[name] = file{content: content, kind: kindsTable[path.Ext(name)], tag: `"` + hex.EncodeToString(sum[:16]) + `"`}
}

// addIndex replaces the template of the page by the page.
func (p *Page) addIndex(cfg Config) error {
	const name = "/index.html"
	t, err := template.New(name).Parse(string(p.files[name].content))
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := t.Execute(&page, cfg); err != nil {
		return err
	}
	p.add(name, page.Bytes())
	p.files["/"] = p.files[name]
	return nil
}

// ServeHTTP answers GET and HEAD of the page, at the path "/", and of its modules beside it.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f, ok := p.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page is read by GET", http.StatusMethodNotAllowed)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // with the ETag: a new version is used at once
	h.Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}
