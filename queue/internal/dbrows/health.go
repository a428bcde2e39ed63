package dbrows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// logEvery is the shortest time between two records of a server that fails. The error
// itself often differs, for example by the port of the connection.
const logEvery = time.Minute

// errSilent is the error of a call whose attempts all end without an answer.
var errSilent = errors.New("no answer in time: the server hangs or cannot be reached, or another program has its port")

// health is what the present calls say about the server. It is safe for concurrent use.
type health struct {
	server string
	logger *slog.Logger

	mu      sync.Mutex // guards the fields below, and those of all calls
	failing int        // calls whose last attempt has failed
	err     error      // of the last attempt that failed; nil if failing is 0
	logged  time.Time  // when an error was logged
	open    bool       // an error was logged, and its end was not
	full    bool       // that the server has no room was logged
}

// call is a call of the server, which may take several attempts.
type call struct {
	health *health
	err    error // of the last attempt that failed
}

// state returns why the server fails, or nil.
func (h *health) state() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// fail records that an attempt has failed. If err only says that the time was over, the
// attempt before it may say more.
func (c *call) fail(err error) {
	h := c.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if contextEnded(err) {
		err = cmp.Or(c.err, errSilent)
	}
	c.failLocked(err)
	if now := clock.Now(); now.Sub(h.logged) >= logEvery {
		h.logged, h.open = now, true
		h.logger.Warn("the database fails; trying again", slog.String("server", h.server), slog.Any("error", err))
	}
}

func (c *call) failLocked(err error) {
	h := c.health
	if c.err == nil {
		h.failing++
	}
	c.err = err
	h.err = fmt.Errorf("%s does not answer as it should, and changes wait for it: %w", h.server, err)
}

// late returns why a call has not returned.
func (c *call) late() error {
	h := c.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.err == nil {
		c.failLocked(errSilent)
	}
	return h.err
}

// reason returns why a call has ended when its context did. err is the error of the last
// attempt.
func (c *call) reason(err error) error {
	h := c.health
	h.mu.Lock()
	defer h.mu.Unlock()
	if contextEnded(err) {
		err = cmp.Or(c.err, err)
	}
	return fmt.Errorf("%s: %w", h.server, err)
}

// succeed records that the server has answered the call, which may be used again.
func (c *call) succeed() {
	h := c.health
	h.mu.Lock()
	defer h.mu.Unlock()
	c.endLocked()
	if h.failing == 0 && h.open {
		h.open = false
		h.logger.Info("calls of the database no longer fail", slog.String("server", h.server))
	}
}

// end records that the call has ended, perhaps without an answer.
func (c *call) end() {
	c.health.mu.Lock()
	defer c.health.mu.Unlock()
	c.endLocked()
}

func (c *call) endLocked() {
	if c.err == nil {
		return
	}
	c.err = nil
	if c.health.failing--; c.health.failing == 0 {
		c.health.err = nil
	}
}

// logRoom logs when the server has no room for more tasks, for the reason why, and when it has
// some again, with a nil why.
func (h *health) logRoom(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	full := why != nil
	if full == h.full {
		return
	}
	if h.full = full; full {
		h.logger.Warn("the database has no room: new tasks are refused, and the others go on",
			slog.String("server", h.server), slog.Any("error", why))
	} else {
		h.logger.Info("the database has room again", slog.String("server", h.server))
	}
}

// contextEnded reports whether err is that of a context which has ended, or of a connection with the deadline
// of a context.
func contextEnded(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, os.ErrDeadlineExceeded)
}
