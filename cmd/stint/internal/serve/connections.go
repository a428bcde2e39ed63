package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// Uses of file descriptors besides connections.
const (
	ownFiles      = 32  // the server itself
	storeFiles    = 256 // the tables of its store, or a quarter of all descriptors if that is fewer
	filesPerTask  = 6   // a command: its log, two pipes, and files open briefly at the start
	filesPerConn  = 2   // a connection, and the log that it reads
	refusedAtOnce = 16  // connections that are being refused at once

	leastConnections = 4
	mostConnections  = 4096
)

// connectionsFor returns how many connections a process that may have files descriptors
// open can serve, so that it can always run that many jobs.
func connectionsFor(files uint64, jobs int) int64 {
	left := int64(min(files, 1<<30)) - ownFiles - min(storeFiles, int64(min(files, 1<<30))/4) -
		refusedAtOnce - int64(jobs)*filesPerTask
	return min(max(left/filesPerConn, leastConnections), mostConnections)
}

// openFiles returns the limit on descriptors of this process. The Go runtime has raised
// the soft limit to the hard one; commands get the original back.
func openFiles() uint64 {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 1024 // the usual limit
	}
	return files.Cur
}

// connections bounds the number of open connections of all listeners of a server
// together. Further connections are answered 503 and closed. It is safe for concurrent
// use.
type connections struct {
	most     atomic.Int64
	open     atomic.Int64
	byTCP    atomic.Int64  // of the open ones, those to TCP addresses
	refusing chan struct{} // a token per connection being refused
	logger   *slog.Logger
}

func newConnections(most int64, logger *slog.Logger) *connections {
	c := &connections{refusing: make(chan struct{}, refusedAtOnce), logger: logger}
	c.most.Store(most)
	return c
}

// bounded is a listener whose connections are counted.
type bounded struct {
	net.Listener
	of     *connections
	closed chan struct{}
	close  sync.Once
}

// limit returns l with its connections counted and bounded.
func (c *connections) limit(l net.Listener) net.Listener {
	return &bounded{Listener: l, of: c, closed: make(chan struct{})}
}

// Accept implements [net.Listener]. If no descriptors are left, it waits for some.
func (b *bounded) Accept() (net.Conn, error) {
	const first, last = 5 * time.Millisecond, time.Second
	for wait := first; ; wait = min(2*wait, last) {
		conn, err := b.Listener.Accept()
		switch {
		case err == nil && b.enter():
			return &counted{Conn: conn, leave: b.leave}, nil
		case err == nil:
			b.of.refuse(conn, b.most())
			wait = first
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
			b.of.logger.Error("no descriptors for connections: raise the limit on open files (ulimit -n)",
				slog.Any("error", err))
			select {
			case <-time.After(wait):
			case <-b.closed:
			}
		default:
			return nil, err
		}
	}
}

// Close implements [net.Listener].
func (b *bounded) Close() error {
	b.close.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// isSocket reports whether the listener is that of the socket.
func (b *bounded) isSocket() bool { return b.Addr().Network() == "unix" }

// most returns how many connections this listener may have, with those of other listeners of
// its network. Every user of the machine can connect to a TCP address, without the token, so a
// quarter is reserved for the socket, which only the server's user can open.
func (b *bounded) most() int64 {
	most := b.of.most.Load()
	if b.isSocket() {
		return most
	}
	return most * 3 / 4
}

// enter counts a connection, unless a limit is reached. A connection above the limit of TCP is not
// counted as open for a moment either, which could refuse one of the socket.
func (b *bounded) enter() bool {
	if !b.isSocket() && b.of.byTCP.Add(1) > b.most() {
		b.of.byTCP.Add(-1)
		return false
	}
	if b.of.open.Add(1) > b.of.most.Load() {
		b.leave()
		return false
	}
	return true
}

func (b *bounded) leave() {
	b.of.open.Add(-1)
	if !b.isSocket() {
		b.of.byTCP.Add(-1)
	}
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	leave func()
	once  sync.Once
}

// Close implements [net.Conn].
func (c *counted) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

// SyscallConn implements [syscall.Conn], which is needed to ask the kernel for the peer's
// user.
func (c *counted) SyscallConn() (syscall.RawConn, error) {
	if raw, ok := c.Conn.(syscall.Conn); ok {
		return raw.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// refuseFor is how long a refused client has to send its request.
const refuseFor = 200 * time.Millisecond

// refuse answers a connection above the limit. If very many come at once, some are closed
// without an answer.
func (c *connections) refuse(conn net.Conn, most int64) {
	c.logger.Error("a connection was refused: clients have too many open; raise the limit on open files (ulimit -n)",
		slog.Int64("connections", most))
	select {
	case c.refusing <- struct{}{}:
	default:
		_ = conn.Close()
		return
	}
	go func() { // takes at most refuseFor
		defer func() { <-c.refusing }()
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(clock.Now().Add(refuseFor))
		// A client treats an answer that precedes its request as a broken connection.
		if _, err := conn.Read(make([]byte, 4<<10)); err != nil {
			return
		}
		if _, err := conn.Write(tooMany(most)); err != nil {
			return
		}
		if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			_, _ = io.Copy(io.Discard, conn) // closing with unread data would reset the connection and lose the answer
		}
	}()
}

// tooMany returns the answer to a request on a connection above the limit.
func tooMany(most int64) []byte {
	problem := wire.ProblemOf(fmt.Errorf("%w: the server has %d connections, which is its limit; "+
		"close some, or raise the limit on open files (ulimit -n) of stint serve", queue.ErrUnavailable, most))
	body, err := json.Marshal(problem)
	if err != nil {
		panic(err) // a Problem has only strings and a number
	}
	header := http.Header{
		"Content-Type": {wire.ProblemJSON}, "Content-Length": {strconv.Itoa(len(body))}, "Connection": {"close"},
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", problem.Status, http.StatusText(problem.Status))
	_ = header.Write(&b) // memory does not fail
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}
