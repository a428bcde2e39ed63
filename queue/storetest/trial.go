package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
)

// trial is a case in progress: a store, and the clock by which the case calls it. A
// method that calls the store ends the test if the call returns an unexpected error.
type trial struct {
	*testing.T
	Harness
	now    time.Time
	ids    queue.IDs
	closed bool // the case has closed the store
}

// The kind, worker, operator and lease of a case that is about none of them.
const (
	kind     = "work"
	worker   = "worker-1"
	operator = "operator-1"
	lease    = time.Minute
)

func newTrial(t *testing.T, h Harness) *trial {
	t.Helper()
	return &trial{T: t, Harness: h, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// ok ends the test if a call returned an error.
func (c *trial) ok(what string, err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s: %v", what, err)
	}
}

// refused checks that a call returned the error want.
func (c *trial) refused(what string, err, want error) {
	c.Helper()
	if !errors.Is(err, want) {
		c.Errorf("%s: the error is %v, want %v", what, err, want)
	}
}

// pass moves the clock of the case by d, which may be negative.
func (c *trial) pass(d time.Duration) { c.now = c.now.Add(d) }

// expireLeases lets the leases of all running tasks expire. The first Maintain restarts
// the leases that were taken before the store was opened.
func (c *trial) expireLeases() {
	c.Helper()
	c.maintain()
	c.pass(2 * lease)
	c.maintain()
}

// crash ends the store as a crash does and opens it again. It reports false if the store
// is not Durable: the case is over then.
func (c *trial) crash() (survived bool) {
	c.Helper()
	if c.Durable != (c.Reopen != nil) {
		c.Fatalf("the harness has Durable %t, but a Reopen: %t", c.Durable, c.Reopen != nil)
	}
	if !c.Durable {
		c.Log("the store is not durable")
		return false
	}
	c.Store = c.Reopen(c.T)
	return true
}

// closeAndReopen closes the store and opens it again; it reports false as crash does.
func (c *trial) closeAndReopen() (survived bool) {
	c.Helper()
	c.ok("Close", c.Store.Close())
	if survived = c.crash(); !survived {
		c.closed = true
	}
	return survived
}

// mayForgetClaims reports whether the store may lose claims in a crash.
func (c *trial) mayForgetClaims() bool {
	if c.PowerLoss {
		c.Log("after a loss of power the store need not remember claims")
	}
	return c.PowerLoss
}

// withClockAhead makes calls by a clock that is ahead, and crashes the store. The process
// that opens it again has the right clock, and opens it at the time of the last call.
func (c *trial) withClockAhead(by time.Duration, calls func()) (survived bool) {
	c.Helper()
	c.pass(by)
	calls()
	survived = c.crash()
	c.pass(-by)
	return survived
}
