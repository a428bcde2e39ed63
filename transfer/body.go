package transfer

import (
	"context"
	"hash/crc32"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint"
)

// part reads a range of a source for one request, and keeps its checksum. The transport may
// read on after it has returned an answer, so that part is safe for concurrent use.
type part struct {
	source io.ReaderAt
	// last is called before the last bytes are returned. Its error replaces them, so that
	// the server does not take a chunk of a file that has changed.
	last func() error

	mu     sync.Mutex
	offset int64
	end    int64
	crc    uint32
	err    error // the error of the source
	closed bool
}

// Read is as [io.Reader] says.
func (p *part) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return 0, fs.ErrClosed
	case p.err != nil:
		return 0, p.err
	case p.offset == p.end:
		return 0, io.EOF
	}
	n, err := p.source.ReadAt(b[:min(int64(len(b)), p.end-p.offset)], p.offset)
	if n > 0 {
		err = nil // the next call returns the error
	}
	if err == nil && p.offset+int64(n) == p.end && p.last != nil {
		err = p.last()
	}
	if err != nil {
		p.err = err
		return 0, err
	}
	p.crc = crc32.Update(p.crc, castagnoli(), b[:n])
	p.offset += int64(n)
	return n, nil
}

// close ends all reading of the source. It returns the checksum of what was read and the
// error of the source.
func (p *part) close() (crc uint32, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.crc, p.err
}

// body is the body of one request: a part, at the rate of a limiter, with a watchdog that
// ends the request if the server takes no bytes for too long.
type body struct {
	*part

	paced io.Reader     // part, or part at the rate of a limiter
	stall time.Duration // until the watchdog acts
	idle  *time.Timer   // the watchdog; it does not run while a limiter delays the bytes
	sent  atomic.Int64  // bytes that the transport has read
	total *atomic.Int64 // the same, of all requests of the attempt
}

// newBody returns a body of a part. ctx has the tier of the task. stalled is called if the
// server takes no bytes for the time of stall, or does not answer for as long after the last
// of them.
func newBody(
	ctx context.Context, p *part, rate *stint.Limiter, stall time.Duration, total *atomic.Int64, stalled func(),
) *body {
	b := &body{part: p, paced: p, stall: stall, idle: time.AfterFunc(stall, stalled), total: total}
	if rate != nil {
		b.paced = rate.Reader(ctx, p)
	}
	return b
}

// Read is as [io.Reader] says.
func (b *body) Read(p []byte) (int, error) {
	b.idle.Stop()
	n, err := b.paced.Read(p)
	b.sent.Add(int64(n))
	b.total.Add(int64(n))
	b.idle.Reset(b.stall)
	return n, err
}

// Close is for the transport, which may still need the watchdog.
func (b *body) Close() error { return nil }

// end stops the watchdog and the reading of the source, when the request is over.
func (b *body) end() (crc uint32, err error) {
	b.idle.Stop()
	return b.close()
}
