package storetest

import (
	"testing"
	"time"
)

// patience is how long a case waits for a signal or an event before it fails. It allows
// for busy machines and remote servers.
const patience = 20 * time.Second

// listener gets the signals of one queue.
type listener struct {
	t     *testing.T
	ready <-chan struct{}
	stop  func()
}

// listen listens to a queue until the case is over, or has called stop.
func (c *trial) listen(name string) *listener {
	ready, stop := c.Store.Listen(name)
	c.Cleanup(stop)
	return &listener{c.T, ready, stop}
}

// drain discards the signal that l may hold.
func (l *listener) drain() {
	select {
	case <-l.ready:
	default:
	}
}

// await waits for a signal after what has happened.
func (l *listener) await(what string) {
	l.t.Helper()
	select {
	case <-l.ready:
	case <-time.After(patience):
		l.t.Fatalf("%s sends no signal to a listener", what)
	}
}

// quiet checks that l has got no signal since it was drained.
func (l *listener) quiet(what string) {
	l.t.Helper()
	if len(l.ready) != 0 {
		l.t.Errorf("%s gets a signal", what)
	}
}
