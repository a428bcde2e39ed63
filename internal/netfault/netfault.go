// Package netfault is a TCP proxy that tests put between a client and a server, to disturb
// their connections: it delays, splits, stalls and breaks them. It runs on the loopback
// interface.
package netfault

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// Fault is what a proxy does to the bytes that pass. The zero value passes them as they come.
type Fault struct {
	Delay time.Duration // before each piece
	Piece int           // the most bytes that are written at once; 0 means no limit
	// Stall lets no byte pass, in either direction, nor the end of a connection. Connections
	// stay open, and new ones are accepted. The bytes pass when the fault ends.
	Stall bool
	// Refuse breaks new connections.
	Refuse bool
}

// Proxy passes connections on to a server. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	fault   Fault
	changed chan struct{} // closed when fault changes
	links   map[*link]struct{}
	closed  bool
	target  string
	passed  int64   // bytes that were written to the server
	alarms  []alarm // that have not been signalled
}

// alarm is a stall when a number of bytes has been written to the server.
type alarm struct {
	at int64
	c  chan struct{}
}

// link is a connection of a client, and that to the server.
type link struct {
	ends   [2]net.Conn
	broken context.Context //nolint:containedctx // ends when the connections are closed
	end    context.CancelFunc
	dead   bool // no byte passes any more; guarded by Proxy.mu
}

// New returns a proxy to a server at host:port, which may start later. The caller closes it.
func New(target string) (*Proxy, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		listener: l, target: target, changed: make(chan struct{}), links: make(map[*link]struct{}),
	}
	p.running.Go(p.accept)
	return p, nil
}

// Addr is the host:port for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set sets the fault of all connections, present and new.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	p.signalLocked()
}

// Retarget sets the host:port to which new connections are passed on.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Passed returns how many bytes have been written to the server, or are being written, over all
// connections: all that an answer refers to.
func (p *Proxy) Passed() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// StallAfter sets Fault.Stall when n more bytes have been written to the server, or up to
// Fault.Piece bytes later, and closes the channel then. Set ends the stall.
func (p *Proxy) StallAfter(n int64) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := alarm{at: p.passed + n, c: make(chan struct{})}
	p.alarms = append(p.alarms, a)
	p.alarmLocked()
	return a.c
}

func (p *Proxy) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed += int64(n)
}

// alarmLocked signals that bytes have been counted and written.
func (p *Proxy) alarmLocked() {
	p.alarms = slices.DeleteFunc(p.alarms, func(a alarm) bool {
		due := p.passed >= a.at
		if due {
			p.fault.Stall = true
			p.signalLocked()
			close(a.c)
		}
		return due
	})
}

// Deaden lets no byte pass over the present connections any more, which stay open, as after
// a firewall has forgotten them. New connections are not affected.
func (p *Proxy) Deaden() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.dead = true
	}
	p.signalLocked()
}

// Cut breaks the present connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.end()
	}
}

// Close breaks all connections, and returns when the proxy has ended.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Cut()
	p.running.Wait()
	return err
}

func (p *Proxy) signalLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(c) })
	}
}

// serve passes on a connection until it ends.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close() //nolint:errcheck // the test sees what has not passed
	const within = 5 * time.Second
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := (&net.Dialer{Timeout: within}).DialContext(context.Background(), "tcp", target)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // see above
	l := &link{ends: [2]net.Conn{client, server}}
	l.broken, l.end = context.WithCancel(context.Background())
	defer l.end()
	if !p.add(l) {
		return
	}
	defer p.remove(l)
	defer context.AfterFunc(l.broken, func() {
		_ = client.Close()
		_ = server.Close()
	})()
	var back sync.WaitGroup
	back.Go(func() { p.pass(l, client, server) })
	p.pass(l, server, client)
	back.Wait()
}

// add adds a link, unless new ones are refused.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.fault.Refuse {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// pass passes bytes on in one direction until the link breaks or from ends.
func (p *Proxy) pass(l *link, to, from net.Conn) {
	const size = 32 << 10
	buffer := make([]byte, size)
	for {
		n, err := from.Read(buffer)
		if !p.write(l, to, buffer[:n]) {
			l.end()
			return
		}
		if err != nil {
			half, ok := to.(interface{ CloseWrite() error })
			if !ok || half.CloseWrite() != nil || !errors.Is(err, io.EOF) {
				l.end()
			}
			return
		}
	}
}

// write writes bytes as the fault says. It reports whether the link is still there.
func (p *Proxy) write(l *link, to net.Conn, b []byte) bool {
	for first := true; first || len(b) > 0; first = false {
		f, ok := p.await(l)
		if !ok {
			return false
		}
		piece := b
		if f.Piece > 0 {
			piece = b[:min(len(b), f.Piece)]
		}
		if len(piece) > 0 && !pause(l.broken, f.Delay) {
			return false
		}
		toServer := to == l.ends[1]
		if toServer {
			p.count(len(piece)) // before the server can answer
		}
		n, err := to.Write(piece)
		if toServer {
			p.count(n - len(piece))
			p.mu.Lock()
			p.alarmLocked()
			p.mu.Unlock()
		}
		if err != nil {
			return false
		}
		b = b[len(piece):]
	}
	return true
}

// await waits while the link is stalled, and returns the fault.
func (p *Proxy) await(l *link) (f Fault, ok bool) {
	for {
		p.mu.Lock()
		f, stalled, changed := p.fault, p.fault.Stall || l.dead, p.changed
		p.mu.Unlock()
		if !stalled {
			return f, l.broken.Err() == nil
		}
		select {
		case <-changed:
		case <-l.broken.Done():
			return f, false
		}
	}
}

// pause waits for a time, and reports whether ctx has not ended by then.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
