package transfer_test

import (
	"io"
	"net/http"
	"sync"
	"testing"
)

// gate stops bodies at a server after a number of bytes, until it is opened.
type gate struct {
	reached chan struct{} // receives for each request that is stopped
	open    func()        // lets all bodies pass from now on

	mu     sync.Mutex
	left   int64 // bytes
	opened chan struct{}
}

// newGate returns a gate that the end of the test opens.
func newGate(t *testing.T, after int64) *gate {
	t.Helper()
	g := &gate{left: after, reached: make(chan struct{}, 1000), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	t.Cleanup(g.open)
	return g
}

// content is for tusServer.content.
func (g *gate) content(_ *http.Request, body io.Reader) io.Reader { return &gated{g, body} }

type gated struct {
	gate *gate
	body io.Reader
}

// Read is as io.Reader says.
func (g *gated) Read(p []byte) (int, error) {
	const step = 4 << 10
	g.gate.mu.Lock()
	stop := g.gate.left <= 0
	g.gate.left -= step
	g.gate.mu.Unlock()
	if stop {
		select {
		case <-g.gate.opened:
		case g.gate.reached <- struct{}{}:
			<-g.gate.opened
		}
	}
	return g.body.Read(p[:min(step, len(p))])
}
