package transfer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
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
// the server has bytes of it that no checksum vouches for.
var errDoubt = errors.New("the file has changed, and the server has a part of a chunk of it")

// errMismatch is the reason to start over if the server has all bytes, and says that they do
// not match a checksum.
var errMismatch = errors.New("the server has the whole file, and says that it does not match its checksum")

// prepare creates the upload of a lane, or asks the server for its offset.
func (a *attempt) prepare(ctx context.Context, p *plan, l *lane) error {
	if l.url.Load() == nil {
		return a.create(ctx, p, l)
	}
	err := a.repeated(ctx, func() error { return a.locate(ctx, p, l) })
	if err == nil {
		a.skipped.Add(l.offset.Load() - l.start)
	}
	return err
}

// create creates the upload of a lane.
func (a *attempt) create(ctx context.Context, p *plan, l *lane) error {
	return a.repeated(ctx, func() error {
		at, err := a.client.create(ctx, a.createFields(p, l))
		if err != nil {
			return a.client.reachable(err)
		}
		l.url.Store(at)
		l.offset.Store(l.start)
		l.known = true
		p.chunks.lose(l.first, l.last)
		return nil
	})
}

// createFields returns the headers that create the upload of a lane.
func (a *attempt) createFields(p *plan, l *lane) http.Header {
	fields := http.Header{}
	fields.Set("Upload-Length", strconv.FormatInt(l.end-l.start, 10))
	pairs := a.job.Args.metadata(p.sha256)
	if len(p.lanes) > 1 {
		fields.Set("Upload-Concat", "partial")
		pairs = map[string]string{partOf: fmt.Sprintf("%s %d %d", p.group, l.start, p.layout.size)}
	}
	fields.Set("Upload-Metadata", metadata(pairs))
	return fields
}

// locate asks the server for the offset of a lane, and corrects the states of its chunks.
func (a *attempt) locate(ctx context.Context, p *plan, l *lane) error {
	at, err := a.client.offset(ctx, l.url.Load())
	if err != nil {
		return err
	}
	offset := l.start + at
	switch {
	case offset == l.end && l.refused:
		return errMismatch
	case offset > l.end:
		return fmt.Errorf("the server says that it has %d bytes of an upload of %d", at, l.end-l.start)
	}
	for i := l.first; i < l.last; i++ {
		from, to := p.layout.offset(i), p.layout.offset(i+1)
		state, sum := p.chunks.state(i)
		changed := p.file != a.source.at
		switch {
		case to > offset && state == ChunkDone:
			p.chunks.lose(i, i+1)
		case from < offset && state != ChunkDone && changed && (to > offset || sum == 0):
			return errDoubt
		case to <= offset && state != ChunkDone:
			now, err := a.source.sum(ctx, from, to, false)
			if err != nil {
				return fmt.Errorf("%w: %w", errRead, err)
			}
			if changed && now.crc != sum {
				return errDoubt
			}
			p.chunks.done(i, now.crc)
		}
	}
	l.offset.Store(offset)
	l.known = true
	return nil
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
	if i > l.first && a.synced != nil {
		if err := a.synced(); err != nil {
			return err
		}
	}
	fields := http.Header{}
	var sent sums
	if a.can.sha256 {
		if l.ahead == nil || l.ahead.from != offset {
			l.ahead.wait()
			l.ahead = a.source.hash(ctx, offset, to)
		}
		l.ahead.wait()
		if l.ahead.err != nil {
			return fmt.Errorf("%w: %w", errRead, l.ahead.err)
		}
		sent = l.ahead.sums
		fields.Set("Upload-Checksum", checksum(sent.sha256))
		if i+1 < l.last { // while this one is sent
			l.ahead = a.source.hash(ctx, to, p.layout.offset(i+2))
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
	crc, err := a.patch(ctx, l, offset-l.start, content, fields)
	if err != nil {
		if ctx.Err() == nil { // a chunk of an attempt that is over is pending
			p.chunks.fail(i)
		}
		l.refused = to == l.end && isMismatch(err)
		return err
	}
	l.offset.Store(to)
	p.chunks.done(i, crc)
	return nil
}

// patch makes one request with a part at an offset of the lane's upload, and returns the
// checksum of the part.
func (a *attempt) patch(ctx context.Context, l *lane, at int64, content *part, fields http.Header) (uint32, error) {
	request, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	rate := a.cfg.Rate
	if rate != nil && a.job.Key != "" {
		mine := rate.Key(a.job.Key)
		rate = &mine
	}
	n := content.end - content.offset
	b := newBody(ctx, content, rate, a.cfg.Stall, &a.sent, func() { stop(errStalled) })
	l.sending.Store(b)
	defer l.sending.Store(nil)
	reached, err := a.client.patch(request, l.url.Load(), at, n, fields, b)
	crc, broken := b.end()
	switch {
	case broken != nil:
		return 0, fmt.Errorf("%w: %w", errRead, broken)
	case err != nil:
		return 0, err
	case reached != at+n:
		return 0, fmt.Errorf("the server says that it has %d bytes after it was sent %d bytes at %d", reached, n, at)
	}
	return crc, nil
}
