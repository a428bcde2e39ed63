package server

import (
	"encoding/json"
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

// write sends an answer, and logs it if it is an internal error of the server.
func (s *Server) write(w http.ResponseWriter, a answer) {
	if a.status >= http.StatusInternalServerError {
		s.errors.add(a)
	}
	s.send(w, a)
}

// send sends an answer. A client that does not read it within [Config.Timeout] is
// dropped.
func (s *Server) send(w http.ResponseWriter, a answer) {
	s.setDeadline(http.NewResponseController(w).SetWriteDeadline)
	h := w.Header()
	h.Set("Content-Type", a.typ)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client is gone; it repeats the call if it needs the answer
}

// setDeadline sets a deadline of the connection, [Config.Timeout] from now;
// connections that have none are left alone.
func (s *Server) setDeadline(set func(time.Time) error) { _ = set(clock.Now().Add(s.cfg.Timeout)) }
