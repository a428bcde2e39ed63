package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
)

// answer is the response to a call, ready to be written.
type answer struct {
	status int
	typ    string
	body   []byte
}

// encoding is the encoding of the body of a call, and of its answer if the call has succeeded.
type encoding uint8

const (
	inJSON encoding = iota
	packed          // see [wire.Pack]
)

func encodingOf(r *http.Request) encoding {
	if wire.IsPacked(r.URL.Path) {
		return packed
	}
	return inJSON
}

// answer returns the answer for the result of a call: out, which is a pointer, or the problem of
// err.
func (e encoding) answer(out any, err error) answer {
	if e == inJSON || err != nil {
		return encoded(out, err)
	}
	body, err := wire.Pack(out)
	if err != nil { // not the client's fault: the call has been made
		return encoded(nil, fmt.Errorf("the answer cannot be packed: %v", err)) //nolint:errorlint // see above
	}
	return answer{http.StatusOK, wire.Packed, body}
}

// encoded returns the answer for the result of a call: out in JSON, or the problem of
// err.
func encoded(out any, err error) answer {
	if err != nil {
		return problem(wire.ProblemOf(err))
	}
	body, err := json.Marshal(out)
	if err != nil {
		return problem(wire.ProblemOf(err))
	}
	return answer{http.StatusOK, wire.JSON, body}
}

func problem(p *wire.Problem) answer {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // a Problem has only strings and a number
	}
	return answer{p.Status, wire.ProblemJSON, body}
}

// detail returns the text of the error in an answer that is a problem.
func (a answer) detail() string {
	var p wire.Problem
	if err := json.Unmarshal(a.body, &p); err != nil {
		return string(a.body)
	}
	return p.Detail
}

// responder sends answers to clients. It is safe for concurrent use.
type responder struct {
	timeout time.Duration // for a client to read an answer or a part of it, or to send a body
	errors  errorThrottle
}

// write sends an answer, and logs it if it is an internal error of the server.
func (r *responder) write(w http.ResponseWriter, a answer) {
	if a.status >= http.StatusInternalServerError {
		r.errors.add(a)
	}
	r.send(w, a)
}

// send sends an answer. A client that does not read it within the timeout is dropped.
func (r *responder) send(w http.ResponseWriter, a answer) {
	r.setDeadline(http.NewResponseController(w).SetWriteDeadline)
	h := w.Header()
	h.Set("Content-Type", a.typ)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // if it fails, the client is gone; it repeats the call if it needs the answer
}

// refuse answers a request that is not a valid call.
func (r *responder) refuse(w http.ResponseWriter, status int, code, detail string) {
	r.setDeadline(http.NewResponseController(w).SetReadDeadline) // for the rest of the request
	r.write(w, problem(&wire.Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}))
}

// setDeadline sets a deadline of the connection, the timeout from now; connections that have
// none are left alone.
func (r *responder) setDeadline(set func(time.Time) error) { _ = set(clock.Now().Add(r.timeout)) }
