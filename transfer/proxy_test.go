package transfer_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/transfer"
)

// proxy is a TCP proxy that breaks connections at random points, until it has no faults left.
type proxy struct {
	listener net.Listener
	to       string
	most     int64         // bytes of a connection before its fault
	over     chan struct{} // closed at the end of the test

	mu     sync.Mutex
	random *rand.Rand
	left   int // faults
	used   map[string]int
	conns  []net.Conn
	all    sync.WaitGroup
}

// The faults.
const (
	cuts      = "cuts"      // both sides are reset
	stalls    = "stalls"    // no more bytes pass; the connections stay open
	truncates = "truncates" // the server sees the end of the request, and its answer is lost
	mutes     = "mutes"     // the request arrives, and its answer is lost
)

// newProxy returns a proxy of a server, and the URL of the server through it.
func newProxy(t *testing.T, server string, most int64, faults int) (*proxy, string) {
	t.Helper()
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{
		listener: listener, to: at.Host, most: most, random: seeded.Rand(t), left: faults, used: make(map[string]int),
		over: make(chan struct{}),
	}
	t.Cleanup(p.close)
	p.all.Go(p.accept)
	at.Host = listener.Addr().String()
	return p, at.String()
}

func (p *proxy) close() {
	close(p.over)
	p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			client.Close()
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		fault, after := "", int64(0)
		if p.left > 0 {
			p.left--
			fault = []string{cuts, stalls, truncates, mutes}[p.random.IntN(4)]
			after = p.random.Int64N(p.most)
			p.used[fault]++
		}
		p.mu.Unlock()
		p.all.Go(func() { p.upstream(server, client, fault, after) })
		p.all.Go(func() { downstream(client, server, fault == mutes) })
	}
}

// upstream copies the requests of a connection up to its fault.
func (p *proxy) upstream(server, client net.Conn, fault string, after int64) {
	defer server.Close()
	if fault == "" || fault == mutes {
		io.Copy(server, client) //nolint:errcheck // the end of a connection
		return
	}
	if _, err := io.CopyN(server, client, after); err != nil {
		return
	}
	switch fault {
	case cuts:
		reset(client)
		reset(server)
	case truncates:
		server.Close()
		io.Copy(io.Discard, client) //nolint:errcheck // the end of a connection
	case stalls:
		<-p.over
	}
}

// reset closes a connection without the rest of its data.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0) //nolint:errcheck // then it is closed with its data
	}
	c.Close()
}

// downstream copies the answers; mute drops them, and ends the connection at the first.
func downstream(client, server net.Conn, mute bool) {
	defer client.Close()
	if mute {
		server.Read(make([]byte, 1)) //nolint:errcheck // the answer is not of interest
		return
	}
	io.Copy(client, server) //nolint:errcheck // the end of a connection
}

// Connections that are cut, stalled, truncated, or lose their answers at random points cost no
// more than one chunk for each fault.
func TestE4_FaultsOfTheNetwork(t *testing.T) {
	const size, faults = 100*chunkSize + 11, 40
	for _, test := range []struct {
		lanes      int
		extensions string
	}{{1, "creation"}, {1, allExtensions}, {4, allExtensions}, {4, "creation,concatenation"}} {
		t.Run(fmt.Sprintf("%d %s", test.lanes, test.extensions), func(t *testing.T) {
			r := newRig(t, transfer.Config{
				Retry: retry.Policy{Attempts: 20, Base: time.Millisecond, Max: 2 * time.Millisecond}, Stall: 100 * time.Millisecond,
			})
			r.server.extensions = test.extensions
			p, at := newProxy(t, r.server.url(), 4*chunkSize, faults)
			want := content(3, size)
			id := r.add("a", want, transfer.Upload{To: at, ChunkSize: chunkSize, Lanes: test.lanes, Verify: true},
				queue.Options{MaxAttempts: 100})
			r.run(1)
			task := r.wait(id, queue.Succeeded)
			r.server.has(t, "a", want)
			if most := int64(size + faults*chunkSize); r.server.bytes() > most {
				t.Errorf("the server received %d bytes; want %d at most", r.server.bytes(), most)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Logf("faults %v: %d bytes of %d sent again, %d failures", p.used, r.server.bytes()-size, size, task.Failures)
		})
	}
}
