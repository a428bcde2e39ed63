package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// drainMax is how long the server reads the body of a request that it has refused.
const drainMax = 2 * time.Second

// Statuses by the names that this package gives them.
const (
	statusBadRequest          = http.StatusBadRequest
	statusConflict            = http.StatusConflict
	statusInsufficientStorage = http.StatusInsufficientStorage
	// statusChecksumMismatch is "460 Checksum Mismatch" of tus 1.0.0.
	statusChecksumMismatch = 460
)

// refusal is an error that the client gets as it is.
type refusal struct {
	status int
	text   string
	// kind is the fragment of the problem type of the IETF draft; "" if there is none.
	kind   string
	fields map[string]any // members of the problem (RFC 9457)
}

func (e *refusal) Error() string { return e.text }

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

// errUnknown answers IDs that no upload has, whatever their form is.
var errUnknown = refuse(http.StatusNotFound, "no upload has this ID: it may have expired or been cancelled")

// errorIs reports whether an error of type E is in the tree of err.
func errorIs[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// refuse answers a request with an error. Errors that are neither the client's nor the
// disk's being full are logged, and the client gets no details.
func (r *Receiver) refuse(w http.ResponseWriter, req *http.Request, err error) {
	var no *refusal
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &no):
	case errors.As(err, &tooLarge):
		no = refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", tooLarge.Limit)
	case errors.Is(err, errTakenOver):
		no = refuse(statusConflict, "%v", errTakenOver)
	case errors.Is(err, errClosing):
		no = refuse(http.StatusServiceUnavailable, "%v", errClosing)
	case errors.Is(err, syscall.EFBIG):
		no = refuse(http.StatusRequestEntityTooLarge, "the file system of the server cannot hold a file of this size")
	case isFull(err):
		r.store.cfg.Logger.Error("the disk is full", slog.String("path", req.URL.Path), slog.Any("error", err))
		no = refuse(statusInsufficientStorage, "the disk of the server is full: make room there, and continue")
	case isTooLarge(err):
		no = refuse(http.StatusRequestEntityTooLarge, "the file system of the server has no files of this size")
	case errors.Is(err, context.Canceled), req.Context().Err() != nil, errorIs[*cutError](err):
		no = refuse(statusBadRequest, "the request ended before its body")
	default:
		r.store.cfg.Logger.Error("receiving an upload failed", slog.String("path", req.URL.Path), slog.Any("error", err))
		no = refuse(http.StatusInternalServerError, "the server failed; its log says why")
	}
	h := w.Header()
	h.Del("Content-Length")
	if req.ContentLength != 0 {
		h.Set("Connection", "close") // the answer does not wait for the rest of the body
		limitDrain(w, req)
	}
	h.Set("Cache-Control", "no-store")
	if isDraft(req) {
		if no.status == http.StatusRequestEntityTooLarge && h.Get(uploadLimit) == "" {
			h.Set(uploadLimit, r.requests.limits(nil)) // section "Limits" of the draft wants it
		}
		h.Set("Content-Type", "application/problem+json")
		w.WriteHeader(no.status)
		if req.Method != http.MethodHead {
			_ = json.NewEncoder(w).Encode(no.problem())
		}
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(no.status)
	if req.Method != http.MethodHead {
		_, _ = fmt.Fprintln(w, no.text)
	}
}

// limitDrain limits how long the server reads the rest of a body, which it does before it answers.
func limitDrain(w http.ResponseWriter, req *http.Request) {
	if req.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(clock.Now().Add(drainMax))
	}
}

// watchedBody notes that a body has been read to its end.
type watchedBody struct {
	io.ReadCloser

	ended bool
}

// Read is as io.Reader says.
func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

// problem returns the refusal in the form of RFC 9457.
func (e *refusal) problem() map[string]any {
	p := map[string]any{"title": e.text, "status": e.status}
	if e.kind != "" {
		p["type"] = problemTypes + e.kind
	}
	maps.Copy(p, e.fields)
	return p
}
