package receiver

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// closeMax is how long Close waits for calls of the system and of the application.
const closeMax = 5 * time.Second

// ErrClosed is the answer to a second Close of a [Receiver].
var ErrClosed = errors.New("receiver: closed")

// Receiver receives uploads into a directory. It is an [http.Handler], safe for
// concurrent use.
type Receiver struct {
	store    *store
	requests *requests
	tus      tusReceiver
	draft    draftReceiver
	plain    plainReceiver

	active sync.WaitGroup // requests, and the sweeper

	mu     sync.Mutex // guards closed
	closed bool
}

var _ http.Handler = (*Receiver)(nil)

// Open makes the directory if there is none, with mode 0700, and returns a receiver for
// it. It first recovers the uploads of an earlier process: it removes leftovers, renames
// files that were complete and, after a restart of the machine, reads the data of
// unfinished uploads and compares it with its checksums. An upload
// whose journal is damaged is logged, and its files are kept with the suffix .damaged. One
// that cannot be read is logged, and left for the next Open. Open
// fails if a newer version of this package has written a journal. On Linux it fails if
// another receiver, of any process, has the directory. Close must be called.
func Open(dir string, cfg Config) (*Receiver, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("receiver: %w", err)
	}
	s := newStore(dir, cfg)
	if err := s.open(); err != nil {
		s.cancel()
		return nil, fmt.Errorf("open %s for uploads: %w", dir, err)
	}
	all := &requests{s}
	r := &Receiver{store: s, requests: all, tus: tusReceiver{all}, draft: draftReceiver{all}, plain: plainReceiver{all}}
	r.active.Go((&sweeper{s}).run)
	return r, nil
}

// Close ends all requests, which keep what they have received, and downloads, waits for them and
// for Finished, and unlocks the directory. Requests after it are answered
// 503. A second call returns [ErrClosed].
//
// Files that are being hashed or copied are completed after the next Open. Close waits 5 s for
// what it cannot end, such as the writing of a big file to a slow disk or a Finished that
// ignores its context. Then it returns an error, and the directory is unlocked when that work
// has ended, or with the end of this process.
func (r *Receiver) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return ErrClosed
	}
	r.closed = true
	r.mu.Unlock()
	r.store.cancel() // interrupts all requests
	ended := make(chan error, 1)
	go func() { // owned by what Close waits for
		r.active.Wait()
		ended <- r.store.lock.Close()
	}()
	limit := time.NewTimer(closeMax)
	defer limit.Stop()
	select {
	case err := <-ended:
		return err
	case <-limit.C:
		return fmt.Errorf("receiver: the disk or Finished takes longer than %s for an upload of %s, which goes on when the "+
			"directory is opened again", closeMax, r.store.dir)
	}
}

// begin counts a request, unless the receiver is closed.
func (r *Receiver) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.active.Add(1)
	return true
}

// ServeHTTP answers a request of any of the protocols, and 404 for paths outside
// [Config.Path].
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !r.begin() {
		http.Error(w, "the server is being stopped", http.StatusServiceUnavailable)
		return
	}
	defer r.active.Done()
	rest, ok := strings.CutPrefix(req.URL.Path, r.store.cfg.Path)
	if !ok {
		http.NotFound(w, req)
		return
	}
	r.allowOrigin(w, req)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	body := &watchedBody{ReadCloser: req.Body}
	// A copy: net/http closes a connection gently only if it finds its own body in the request.
	req = req.WithContext(req.Context())
	req.Body = body
	if req.Method == http.MethodGet {
		limitDrain(w, req) // a long answer begins before the end
	}
	defer func() {
		if !body.ended {
			limitDrain(w, req)
		}
	}()
	if err := r.route(w, req, rest); err != nil {
		r.refuse(w, req, err)
	}
}

// route chooses the protocol of a request by its headers.
func (r *Receiver) route(w http.ResponseWriter, req *http.Request, rest string) error {
	switch {
	case req.Method == http.MethodOptions:
		return r.options(w)
	case req.Method == http.MethodPut && req.Header.Get("Content-Range") != "":
		// RFC 9110, section 14.5. The part must not be taken for the whole.
		return refuse(statusBadRequest,
			"a PUT with Content-Range is not served; PUT %s<name>/<offset>?size=<n> sends a chunk", r.store.cfg.Path)
	case isDraft(req):
		return r.draft.serve(w, req, rest)
	case req.Header.Get(tusResumable) != "":
		return r.tus.serve(w, req, rest)
	case req.Method == http.MethodPut || strings.Contains(rest, "/"):
		return r.plain.serve(w, req, rest)
	case req.Method == http.MethodGet || req.Method == http.MethodHead:
		return r.requests.serveFile(w, req, rest)
	case req.Method == http.MethodPost || req.Method == http.MethodPatch || req.Method == http.MethodDelete:
		// Without its header, as the specification of tus wants it.
		return r.tus.serve(w, req, rest)
	}
	w.Header().Set("Allow", allowedMethods)
	return refuse(http.StatusMethodNotAllowed, "%s is not a method of uploads", req.Method)
}

// options answers OPTIONS with the abilities of all protocols.
func (r *Receiver) options(w http.ResponseWriter) error {
	h := w.Header()
	h.Set(tusResumable, tusVersion)
	h.Set("Tus-Version", tusVersion)
	h.Set("Tus-Extension", tusExtensions)
	h.Set("Tus-Checksum-Algorithm", checksumNames())
	if r.store.cfg.MaxSize > 0 {
		h.Set("Tus-Max-Size", strconv.FormatInt(r.store.cfg.MaxSize, 10))
	}
	h.Set("Accept-Patch", partialUpload+", "+offsetStream)
	h.Set(uploadLimit, r.requests.limits(nil))
	h.Set("Allow", allowedMethods)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
