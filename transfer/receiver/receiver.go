package receiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

const (
	uploadsDir = ".uploads" // in the directory of the receiver
	lockFile   = "lock"     // in uploadsDir
	logSuffix  = ".log"
	// damagedSuffix is of the data and the journal of an upload whose journal cannot be read.
	damagedSuffix = ".damaged"

	sweepEvery = time.Minute

	// closeMax is how long Close waits for calls of the system and of the application.
	closeMax = 5 * time.Second

	// receiptsMax is how many finished uploads are known by their IDs: a receipt takes about
	// 1 KiB of memory.
	receiptsMax = 10_000
)

// ErrClosed is the answer to a second Close of a [Receiver].
var ErrClosed = errors.New("receiver: closed")

// Receiver receives uploads into a directory. It is an [http.Handler], safe for
// concurrent use.
type Receiver struct {
	dir  string // of finished files
	work string // of unfinished uploads
	cfg  Config
	disk disk
	lock *os.File

	ctx    context.Context //nolint:containedctx // of Finished: the life of the receiver
	cancel context.CancelFunc
	active sync.WaitGroup // requests, and the sweeper

	groupsMu sync.Mutex // held while a group is looked up and made; taken before all others

	// mu guards what follows. It is taken after the mutex of a file, never before.
	mu       sync.Mutex
	closed   bool
	uploads  map[string]*upload // by ID
	files    map[*file]struct{}
	groups   map[string]*file // the latest of each fileRecord.Group
	reserved int64            // bytes of unfinished uploads
	byKey    map[string]int64 // the same by key
}

var _ http.Handler = (*Receiver)(nil)

// Open makes the directory if there is none, with mode 0700, and returns a receiver for
// it, once all uploads that a former process has left are as they should be: leftovers
// are removed, files that were complete get their place, and after a restart of the
// machine the data of unfinished uploads is read and compared with its checksums. An upload
// whose journal is damaged is logged, and its files are kept with the suffix .damaged. Open
// fails if a newer version of this package has written a journal. On Linux it fails if
// another receiver, of any process, has the directory. Close must be called.
func Open(dir string, cfg Config) (*Receiver, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("receiver: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Receiver{
		dir: dir, work: filepath.Join(dir, uploadsDir), cfg: cfg, disk: cfg.disk,
		ctx: ctx, cancel: cancel,
		uploads: map[string]*upload{}, files: map[*file]struct{}{}, groups: map[string]*file{}, byKey: map[string]int64{},
	}
	if err := r.open(); err != nil {
		cancel()
		return nil, fmt.Errorf("open %s for uploads: %w", dir, err)
	}
	r.active.Go(r.sweepAll)
	return r, nil
}

func (r *Receiver) open() error {
	if err := os.MkdirAll(r.work, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(r.work, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err = lock(f); err == nil {
		err = r.load()
	}
	if err != nil {
		_ = f.Close()
		return err
	}
	r.lock = f
	return nil
}

// Close ends all requests, which keep what they have received, waits for them and for
// Finished, and lets other processes have the directory. Requests after it are answered
// 503. A second call returns [ErrClosed].
//
// Files that are being hashed or copied are completed after the next Open. Close waits 5 s for
// what it cannot end, such as the writing of a big file to a slow disk or a Finished that
// ignores its context. Then it returns an error, and other processes get the directory when
// that has ended, or with the end of this process.
func (r *Receiver) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return ErrClosed
	}
	r.closed = true
	all := make([]*file, 0, len(r.files))
	for f := range r.files {
		all = append(all, f)
	}
	r.mu.Unlock()
	r.cancel()
	for _, f := range all {
		f.interrupt(errClosing)
	}
	ended := make(chan error, 1)
	go func() { // owned by what Close waits for
		r.active.Wait()
		ended <- r.lock.Close()
	}()
	limit := time.NewTimer(closeMax)
	defer limit.Stop()
	select {
	case err := <-ended:
		return err
	case <-limit.C:
		return fmt.Errorf("receiver: the disk or Finished takes longer than %s for an upload of %s, which goes on when the "+
			"directory is opened again", closeMax, r.dir)
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
	rest, ok := strings.CutPrefix(req.URL.Path, r.cfg.Path)
	if !ok {
		http.NotFound(w, req)
		return
	}
	r.allowOrigin(w, req)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := r.route(w, req, rest); err != nil {
		r.refuse(w, req, err)
	}
}

// route chooses the protocol of a request by its headers.
func (r *Receiver) route(w http.ResponseWriter, req *http.Request, rest string) error {
	switch {
	case req.Method == http.MethodOptions:
		return r.options(w)
	case isDraft(req):
		return r.serveDraft(w, req, rest)
	case req.Header.Get(tusResumable) != "":
		return r.serveTus(w, req, rest)
	case req.Method == http.MethodPut || strings.Contains(rest, "/"):
		return r.servePlain(w, req, rest)
	case req.Method == http.MethodGet || req.Method == http.MethodHead:
		return r.serveFile(w, req, rest)
	case req.Method == http.MethodPost || req.Method == http.MethodPatch || req.Method == http.MethodDelete:
		// Without its header, as the specification of tus wants it.
		return r.serveTus(w, req, rest)
	}
	w.Header().Set("Allow", allowedMethods)
	return refuse(http.StatusMethodNotAllowed, "%s is not a method of uploads", req.Method)
}

// find returns the upload with an ID.
func (r *Receiver) find(id string) (*upload, error) {
	r.mu.Lock()
	u := r.uploads[id]
	r.mu.Unlock()
	if u == nil {
		return nil, errUnknown
	}
	return u, nil
}

// sweepAll sweeps at once, for what Open has found, and then periodically.
func (r *Receiver) sweepAll() {
	r.sweep(clock.Now())
	tick := time.NewTicker(min(sweepEvery, r.cfg.Expiry))
	defer tick.Stop()
	for {
		select {
		case <-r.ctx.Done():
			return
		case now := <-tick.C:
			r.sweep(now)
		}
	}
}

// sweep removes what has expired at a time, and the oldest receipts beyond receiptsMax, and
// calls Finished again where it has failed.
func (r *Receiver) sweep(now time.Time) {
	r.mu.Lock()
	all := make([]*file, 0, len(r.files))
	for f := range r.files {
		all = append(all, f)
	}
	r.mu.Unlock()
	oldest := r.oldReceipts(all)
	for _, f := range all {
		if r.ctx.Err() != nil {
			return
		}
		at := now
		if oldest[f] {
			at = now.Add(r.cfg.Expiry)
		}
		if err := f.expire(at); err != nil {
			r.cfg.Logger.Error("removing an expired upload failed", slog.String("upload", f.id), slog.Any("error", err))
		}
		if f.unannounced() {
			if err := f.announce(r.ctx); err != nil {
				r.cfg.Logger.Error("the hook of a finished upload failed", slog.String("upload", f.id), slog.Any("error", err))
			}
		}
	}
}

// oldReceipts returns the finished files that have to be forgotten.
func (r *Receiver) oldReceipts(all []*file) map[*file]bool {
	if len(all) <= receiptsMax {
		return nil
	}
	finished := map[*file]time.Time{}
	for _, f := range all {
		f.mu.Lock()
		if f.announced {
			finished[f] = f.touched
		}
		f.mu.Unlock()
	}
	byAge := slices.SortedFunc(maps.Keys(finished), func(a, b *file) int { return finished[a].Compare(finished[b]) })
	old := map[*file]bool{}
	for _, f := range byAge[:max(len(byAge)-receiptsMax, 0)] {
		old[f] = true
	}
	return old
}
