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
func (c *errorThrottle) add(a answer) {
	if a.status != http.StatusServiceUnavailable {
		c.log.Error("answer a call", slog.Int("status", a.status), slog.String("error", a.detail()))
	} else if unlogged, say := c.count(); say {
		c.log.Error("calls cannot be done at present", slog.String("error", a.detail()), slog.Int("more", unlogged))
	}
}

// count reports whether an answer is to be logged, and how many answers were not
// logged since the last one that was.
func (c *errorThrottle) count() (unlogged int, say bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if !c.last.IsZero() && now.Sub(c.last) < quiet {
		c.unlogged++
		return 0, false
	}
	unlogged, c.unlogged, c.last = c.unlogged, 0, now
	return unlogged, true
}
