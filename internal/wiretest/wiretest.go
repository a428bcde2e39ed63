// Package wiretest lets a test decide the time of a server.
package wiretest

import (
	"net/http"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
)

// ClientTime returns a handler that passes the calls that state a time to h as if they
// came at that time. A real server does not trust its clients' clocks.
func ClientTime(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at, err := time.Parse(time.RFC3339Nano, r.Header.Get(wire.Now)); err == nil {
			r = r.WithContext(clock.WithTime(r.Context(), at))
		}
		h.ServeHTTP(w, r)
	})
}
