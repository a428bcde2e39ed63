package server

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/stintgo/stint/internal/wire"
)

// answer is one to a call, ready to be written.
type answer struct {
	status int
	typ    string
	body   []byte
}

// encoded is the answer that says what a call returned.
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
		panic(err) // it is made of texts and a number
	}
	return answer{p.Status, wire.ProblemJSON, body}
}

// write sends an answer, and logs it if it is an error of the server's own.
func (s *Server) write(w http.ResponseWriter, a answer) {
	if a.status >= http.StatusInternalServerError {
		s.errors.add(a)
	}
	s.send(w, a)
}

// send sends an answer, and gives up on a client that does not take it.
func (s *Server) send(w http.ResponseWriter, a answer) {
	s.hurry(http.NewResponseController(w).SetWriteDeadline)
	h := w.Header()
	h.Set("Content-Type", a.typ)
	h.Set("Content-Length", strconv.Itoa(len(a.body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client is gone: it asks again if it wants to know
}

// hurry gives the client its time. What has no deadlines is no connection.
func (s *Server) hurry(set func(time.Time) error) { _ = set(after(s.cfg.Timeout)) }
