package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stintgo/stint/queue"
)

// Problem is an error in the form of RFC 9457. Programs distinguish errors by Code.
type Problem struct {
	Title  string `json:"title"`  // of the code
	Status int    `json:"status"` // of the response
	Code   string `json:"code"`
	Detail string `json:"detail"` // the error's text
}

// Internal is the code of errors that are the server's own fault.
const Internal = "internal"

// Codes of calls that a server does not know.
const (
	UnknownCall = "unknown_call" // the path, with status 404
	UnknownType = "content_type" // the type of the body, with status 415
)

// Codes of calls to a TCP address that are answered with status 401.
const (
	NoToken    = "token"       // the call has no Authorization header
	WrongToken = "wrong_token" // the header does not have the token of the server
)

// code is an error of the store interface, with its name and status in a response.
type code struct {
	name   string
	status int
	err    error
}

// ErrInPart is the error of a call that has been made in part: to repeat it could change more than
// was asked for. It is a [queue.ErrUnavailable] with a status of its own, since clients repeat a
// call that is answered with 503.
var ErrInPart = fmt.Errorf("%w: done in part", queue.ErrUnavailable)

// codesTable has the codes. If an error matches several, the first one applies, so the
// more specific ones come first. ErrClosed is missing: the client's store is not closed,
// and if the server's is, another server may be started.
var codesTable = [...]code{
	{"in_part", http.StatusInternalServerError, ErrInPart},
	{"unavailable", http.StatusServiceUnavailable, queue.ErrUnavailable},
	{"too_large", http.StatusRequestEntityTooLarge, queue.ErrTooLarge},
	{"invalid", http.StatusBadRequest, queue.ErrInvalid},
	{"full", http.StatusTooManyRequests, queue.ErrFull},
	{"changed", http.StatusPreconditionFailed, queue.ErrChanged},
	{"stale", http.StatusConflict, queue.ErrStale},
	{"not_found", http.StatusNotFound, queue.ErrNotFound},
}

// ProblemOf returns an error in the form that is sent to the client.
func ProblemOf(err error) *Problem {
	if errors.Is(err, queue.ErrClosed) {
		err = fmt.Errorf("%w: the store of the server is closed: try again when the server has been restarted",
			queue.ErrUnavailable)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: the call was given up: %w", queue.ErrUnavailable, err)
	}
	for _, c := range codesTable {
		if errors.Is(err, c.err) {
			return &Problem{Title: c.err.Error(), Status: c.status, Code: c.name, Detail: err.Error()}
		}
	}
	return &Problem{
		Title: "internal error", Status: http.StatusInternalServerError, Code: Internal, Detail: err.Error(),
	}
}

// Err returns the error that the problem was made from: its text, and the error of
// package queue that it wraps. An unknown code becomes [queue.ErrUnavailable], which says
// that the result of the call is unknown.
func (p *Problem) Err() error {
	for _, c := range codesTable {
		if p.Code == c.name {
			return &remoteError{text: p.Detail, kind: c.err}
		}
	}
	return fmt.Errorf("%w: %s", queue.ErrUnavailable, p.Detail)
}

// remoteError is an error that the server has returned.
type remoteError struct {
	text string
	kind error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }
