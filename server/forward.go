package server

import (
	"io"
	"net/http"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// transportFor returns the transport to the server that keeps a log, nil if this one does.
func (l *logs) transportFor(r *http.Request, id queue.ID) (http.RoundTripper, error) {
	if l.at == nil {
		return nil, nil
	}
	return l.at(r.Context(), id)
}

// forward passes a request for a log on to the server that keeps it, and its answer back
// as it arrives. It ends with the client.
func (l *logs) forward(w http.ResponseWriter, r *http.Request, to http.RoundTripper) {
	if r.URL.Query().Has(wire.QuerySize) { // it waits, as in serveOwn
		if !l.streams.enter(w) {
			return
		}
		defer l.streams.leave()
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, "http://node"+wire.Log+"?"+r.URL.RawQuery, nil)
	if err != nil {
		l.to.write(w, encoded(nil, err))
		return
	}
	copyHeaders(out.Header, r.Header, "Range", "If-Range", "If-Modified-Since", "If-Unmodified-Since", "If-Match",
		"If-None-Match", wire.LogFile, wire.Client)
	res, err := to.RoundTrip(out)
	if err != nil {
		l.to.send(w, encoded(nil, err)) // the fault of another process is not logged here
		return
	}
	defer res.Body.Close() //nolint:errcheck // only read
	copyHeaders(w.Header(), res.Header, "Content-Type", "Content-Length", "Content-Range", "Accept-Ranges",
		"Last-Modified", wire.LogFile, "X-Content-Type-Options", "Cache-Control")
	l.to.setDeadline(http.NewResponseController(w).SetWriteDeadline)
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
