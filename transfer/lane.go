package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"

	"github.com/stintgo/stint/transfer/internal/protocol"
)

// lane is a range of chunks of a file that are sent one after the other, to one upload of the
// server: the whole file, or a partial upload. One goroutine works on it; others read the
// atomic fields.
type lane struct {
	first, last int      // its chunks, without last
	start, end  int64    // its bytes in the file
	known       bool     // offset is that of the server
	ahead       *hashing // of the next chunk; nil if there is none
	refused     bool     // the last request had the last bytes, and the server said that they do not match a checksum

	url     atomic.Pointer[url.URL] // of the upload; nil before it is created
	offset  atomic.Int64            // in the file: the server has the bytes of the lane before it
	sending atomic.Pointer[body]    // of the request that is being made; nil between requests
}

// errRead is wrapped by errors of the file, which no repetition of a request can help.
var errRead = errors.New("read the file")

// errDoubt is the reason to start over if a file was written to since its last attempt, and
// the server has bytes of it whose content no checksum proves.
var errDoubt = errors.New("the file has changed, and the server has a part of a chunk of it")

// prepare creates the upload of a lane, or asks the server for its offset.
func (a *attempt) prepare(ctx context.Context, p *plan, l *lane) error {
	if l.url.Load() == nil {
		if err := a.create(ctx, p, l); err != nil || l.known {
			return err
		}
	}
	err := a.repeated(ctx, func() error { return a.locate(ctx, p, l) })
	if err == nil {
		a.skipped.Add(l.offset.Load() - l.start)
	}
	return err
}

// create creates the upload of a lane. The offset is not known if an earlier process has sent a part of it.
func (a *attempt) create(ctx context.Context, p *plan, l *lane) error {
	return a.repeated(ctx, func() error {
		at, held, err := a.server.Begin(ctx, a.file(p), l.described())
		if err != nil {
			return err
		}
		l.url.Store(at)
		l.offset.Store(l.start)
		l.known = held == 0
		p.chunks.lose(l.first, l.last)
		return nil
	})
}

// described describes the lane for the server.
func (l *lane) described() protocol.Lane {
	return protocol.Lane{URL: l.url.Load(), First: l.first, Last: l.last, Start: l.start, End: l.end}
}

// locate asks the server for the offset of a lane, and corrects the states of its chunks.
func (a *attempt) locate(ctx context.Context, p *plan, l *lane) error {
	held, err := a.server.Held(ctx, a.file(p), l.described())
	if err != nil {
		return err
	}
	offset := l.start + held.Bytes
	switch {
	case offset == l.end && l.refused:
		return protocol.ErrMismatch
	case offset > l.end:
		return fmt.Errorf("the server says that it has %d bytes of an upload of %d", held.Bytes, l.end-l.start)
	}
	for i := l.first; i < l.last; i++ {
		var theirs *uint32
		if i-l.first < len(held.CRC32C) {
			theirs = &held.CRC32C[i-l.first]
		}
		same, err := a.settle(ctx, p, i, offset, theirs)
		if err != nil {
			return err
		}
		if !same {
			offset = p.layout.offset(i)
		}
	}
	l.offset.Store(offset)
	l.known = true
	return nil
}

// settle corrects the state of a chunk when the server has the lane's bytes before an offset.
// theirs is the CRC32C of the server; nil if it sends none. The result is false if the server
// has another content of the chunk, which has to be sent again.
func (a *attempt) settle(ctx context.Context, p *plan, i int, offset int64, theirs *uint32) (same bool, err error) {
	from, to := p.layout.offset(i), p.layout.offset(i+1)
	state, sum := p.chunks.state(i)
	changed := p.file != a.source.at
	switch {
	case to > offset && state == ChunkDone:
		p.chunks.lose(i, i+1)
	case to <= offset && state == ChunkDone && theirs != nil && *theirs != sum:
		p.chunks.lose(i, i+1)
		return false, nil
	case from < offset && state != ChunkDone && changed && theirs == nil && (to > offset || sum == 0):
		return true, errDoubt
	case to <= offset && state != ChunkDone:
		now, err := a.source.sum(ctx, from, to, false)
		switch {
		case err != nil:
			return true, fmt.Errorf("%w: %w", errRead, err)
		case theirs != nil && now.crc != *theirs:
			return false, nil
		case theirs == nil && changed && now.crc != sum:
			return true, errDoubt
		}
		p.chunks.done(i, now.crc)
	}
	return true, nil
}

// send sends the rest of a lane. Requests that fail are made again, from the offset that the
// server says, until too many in a row fail without one byte more.
func (a *attempt) send(ctx context.Context, p *plan, l *lane) error {
	defer func() { l.ahead.wait() }() // it reads the file
	b := backoff{policy: a.cfg.Retry}
	furthest := l.offset.Load()
	for !l.known || l.offset.Load() < l.end {
		var err error
		if l.known {
			err = a.sendChunk(ctx, p, l)
		} else {
			err = a.locate(ctx, p, l)
		}
		if now := l.offset.Load(); now > furthest {
			furthest, b = now, backoff{policy: a.cfg.Retry}
		}
		if err == nil {
			continue
		}
		l.known = false
		if err := a.again(ctx, &b, err); err != nil {
			return err
		}
	}
	return nil
}

// sendChunk sends the rest of the chunk at the lane's offset in one request.
func (a *attempt) sendChunk(ctx context.Context, p *plan, l *lane) error {
	offset := l.offset.Load()
	i := int(offset / p.layout.chunk)
	from, to := p.layout.offset(i), p.layout.offset(i+1)
	if (i > l.first || a.can.Durable) && a.synced != nil {
		if err := a.synced(); err != nil {
			return err
		}
	}
	piece := &protocol.Piece{Chunk: i, Offset: offset - l.start, Size: to - offset, Whole: -1}
	var sent sums
	if a.can.Sums {
		if l.ahead == nil || l.ahead.from != offset {
			l.ahead.wait()
			l.ahead = a.source.hash(ctx, offset, to, a.can.SHA256)
		}
		l.ahead.wait()
		if l.ahead.err != nil {
			return fmt.Errorf("%w: %w", errRead, l.ahead.err)
		}
		sent = l.ahead.sums
		piece.Sums, piece.CRC32C, piece.SHA256 = true, sent.crc, sent.sha256
		if i+1 < l.last { // while this one is sent
			l.ahead = a.source.hash(ctx, to, p.layout.offset(i+2), a.can.SHA256)
		}
	}
	before, err := a.source.sum(ctx, from, offset, false) // the server had it already
	if err != nil {
		return fmt.Errorf("%w: %w", errRead, err)
	}
	if offset > from {
		sent.crc = 0 // it is not that of the chunk
	}
	p.chunks.sending(i, sent.crc)
	content := &part{source: a.source, last: a.source.unchanged, offset: offset, end: to, crc: before.crc}
	crc, err := a.transmit(ctx, p, l, piece, content)
	if err != nil {
		if ctx.Err() == nil { // a chunk of an attempt that is over is pending
			p.chunks.fail(i)
		}
		l.refused = to == l.end && errors.Is(err, protocol.ErrChecksum)
		return err
	}
	l.offset.Store(to)
	p.chunks.done(i, crc)
	return nil
}

// transmit makes one request with a piece, whose content is a part of the source, and returns
// the checksum of the part.
func (a *attempt) transmit(
	ctx context.Context, p *plan, l *lane, piece *protocol.Piece, content *part,
) (uint32, error) {
	request, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	rate := a.cfg.Rate
	if rate != nil && a.job.Key != "" {
		mine := rate.Key(a.job.Key)
		rate = &mine
	}
	b := newBody(ctx, content, rate, a.cfg.Stall, &a.sent, func() { stop(protocol.ErrStalled) })
	l.sending.Store(b)
	defer l.sending.Store(nil)
	piece.Body = b
	reached, err := a.server.Send(request, a.file(p), l.described(), piece)
	crc, broken := b.end()
	switch {
	case broken != nil:
		return 0, fmt.Errorf("%w: %w", errRead, broken)
	case err != nil:
		return 0, err
	case reached != piece.Offset+piece.Size:
		return 0, fmt.Errorf("the server says that it has %d bytes after it was sent %d bytes at %d", reached, piece.Size,
			piece.Offset)
	}
	return crc, nil
}
