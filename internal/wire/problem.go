package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stintgo/stint/queue"
)

// Problem is an error as RFC 9457 has it. Its Code is what programs go by.
type Problem struct {
	Title  string `json:"title"`  // of the code
	Status int    `json:"status"` // of the answer
	Code   string `json:"code"`
	Detail string `json:"detail"` // the error's text
}

// Internal is the code of errors that are the server's own fault.
const Internal = "internal"

// Codes of calls to a TCP address that are answered 401.
const (
	NoToken    = "token"       // the call has no header Authorization
	WrongToken = "wrong_token" // the header does not have the token of the server
)

// code is one of those that a call of a store can be answered.
type code struct {
	name   string
	status int
	err    error
}

// codesTable has the codes, those first that say more if an error is several.
// ErrClosed is missing: it is the client that has not been closed, and if the
// server's store has, another server may come.
var codesTable = [...]code{
	{"unavailable", http.StatusServiceUnavailable, queue.ErrUnavailable},
	{"too_large", http.StatusRequestEntityTooLarge, queue.ErrTooLarge},
	{"invalid", http.StatusBadRequest, queue.ErrInvalid},
	{"full", http.StatusTooManyRequests, queue.ErrFull},
	{"changed", http.StatusPreconditionFailed, queue.ErrChanged},
	{"stale", http.StatusConflict, queue.ErrStale},
	{"not_found", http.StatusNotFound, queue.ErrNotFound},
}

// ProblemOf is an error as the client is told of it.
func ProblemOf(err error) *Problem {
	if errors.Is(err, queue.ErrClosed) {
		err = fmt.Errorf("%w: the server's store is closed, try again when it has been started anew", queue.ErrUnavailable)
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

// Err is the error that the problem was made of: its text, and which of those
// that calls of a store can be answered. A code that is not known says that
// nothing is known to have been done.
func (p *Problem) Err() error {
	for _, c := range codesTable {
		if p.Code == c.name {
			return &told{text: p.Detail, kind: c.err}
		}
	}
	return fmt.Errorf("%w: %s", queue.ErrUnavailable, p.Detail)
}

// told is an error that somebody else has found.
type told struct {
	text string
	kind error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.kind }
