package server

import (
	"io"
	"net/http"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// ServeLog answers a request for a log of this process. Mount it where the RoundTripper of
// [Config.LogAt] in the other server processes sends its requests. It asks for no token: the
// caller of ServeLog decides whether the client may read the log.
func (s *Server) ServeLog(w http.ResponseWriter, r *http.Request) {
	if id, ok := s.logID(w, r); ok {
		s.ownLog(w, r, id)
	}
}

// logWay returns what sends a request to the server that keeps a log, nil if this one does.
func (s *Server) logWay(r *http.Request, id queue.ID) (http.RoundTripper, error) {
	if s.cfg.LogAt == nil {
		return nil, nil
	}
	return s.cfg.LogAt(r.Context(), id)
}

// forwardLog passes a request for a log on to the server that keeps it, and its answer back
// as it arrives. It ends with the client.
func (s *Server) forwardLog(w http.ResponseWriter, r *http.Request, to http.RoundTripper) {
	if r.URL.Query().Has(wire.QuerySize) { // it waits, as in ownLog
		if !s.streams.enter(w) {
			return
		}
		defer s.streams.leave()
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, "http://node"+wire.Log+"?"+r.URL.RawQuery, nil)
	if err != nil {
		s.to.write(w, encoded(nil, err))
		return
	}
	copyHeaders(out.Header, r.Header, "Range", "If-Range", "If-Modified-Since", "If-Unmodified-Since", "If-Match",
		"If-None-Match", wire.LogFile, wire.Client)
	res, err := to.RoundTrip(out)
	if err != nil {
		s.to.send(w, encoded(nil, err)) // the fault of another process is not logged here
		return
	}
	defer res.Body.Close() //nolint:errcheck // only read
	copyHeaders(w.Header(), res.Header, "Content-Type", "Content-Length", "Content-Range", "Accept-Ranges",
		"Last-Modified", wire.LogFile, "X-Content-Type-Options", "Cache-Control")
	s.to.setDeadline(http.NewResponseController(w).SetWriteDeadline)
	w.WriteHeader(res.StatusCode)
	if _, err := io.Copy(w, res.Body); err != nil {
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
}

func copyHeaders(to, from http.Header, names ...string) {
	for _, name := range names {
		if value := from.Get(name); value != "" {
			to.Set(name, value)
		}
	}
}
