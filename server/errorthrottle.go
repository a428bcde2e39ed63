package server

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// quiet is the minimum time between two log lines about the store being unavailable.
const quiet = time.Minute

// errorThrottle logs the internal errors of the server. While the store is
// unavailable, all clients repeat their calls; a log line for each answer could fill a
// disk, and a full disk may be why the store is unavailable.
type errorThrottle struct {
	log   *slog.Logger
	clock clock.Steady

	mu       sync.Mutex
	last     time.Time // when an unavailable store was last logged
	unlogged int       // answers not logged since
}

// add logs an answer. Of the answers that say that the store is unavailable, it logs
// one per minute.
func (t *errorThrottle) add(a answer) {
	if a.status != http.StatusServiceUnavailable {
		t.log.Error("answer a call", slog.Int("status", a.status), slog.String("error", a.detail()))
	} else if unlogged, say := t.count(); say {
		t.log.Error("calls cannot be done at present", slog.String("error", a.detail()), slog.Int("more", unlogged))
	}
}

// count reports whether an answer is to be logged, and how many answers were not
// logged since the last one that was.
func (t *errorThrottle) count() (unlogged int, say bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if !t.last.IsZero() && now.Sub(t.last) < quiet {
		t.unlogged++
		return 0, false
	}
	unlogged, t.unlogged, t.last = t.unlogged, 0, now
	return unlogged, true
}
