package server

import (
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// quiet is how long nothing more is logged of the store's not being available.
const quiet = time.Minute

// complaints are the errors of the server's own, as they are logged. While the store
// is not available, all clients ask again and again; were each answer a line of the
// log, that would fill the disk that may be full already.
type complaints struct {
	log   *slog.Logger
	clock clock

	mu     sync.Mutex
	last   time.Time // when one was logged of what may be repeated
	unsaid int       // those since
}

// add logs an answer, unless it is one of many.
func (c *complaints) add(a answer) {
	if a.status == http.StatusServiceUnavailable {
		unsaid, say := c.count()
		if say {
			c.log.Error("calls cannot be done at present", slog.String("problem", string(a.body)), slog.Int("more", unsaid))
		}
		return
	}
	c.log.Error("answer a call", slog.Int("status", a.status), slog.String("problem", string(a.body)))
}

// count reports whether one of many is to be logged, and how many were not since the
// last one was.
func (c *complaints) count() (unsaid int, say bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.now()
	if !c.last.IsZero() && now.Sub(c.last) < quiet {
		c.unsaid++
		return 0, false
	}
	unsaid, c.unsaid, c.last = c.unsaid, 0, now
	return unsaid, true
}
