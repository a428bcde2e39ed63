package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/stintgo/stint/transfer/internal/protocol"
)

// errRead is wrapped by errors of the file, which no repetition of a request can help.
var errRead = errors.New("read the file")

// errUnverified is the reason to start over if a file was written to since its last attempt, and
// the server has bytes of it whose content no checksum proves.
var errUnverified = errors.New("the file has changed, and the server has a part of a chunk of it")

// sender sends one lane of a plan.
type sender struct {
	*lane

	attempt *attempt
	plan    *plan
}

// sender returns the sender of a lane.
func (a *attempt) sender(p *plan, i int) sender { return sender{p.lanes[i], a, p} }

// prepare creates the upload of the lane, or asks the server for its offset.
func (s sender) prepare(ctx context.Context) error {
	if s.url.Load() == nil {
		if err := s.create(ctx); err != nil || s.known {
			return err
		}
	}
	err := s.attempt.repeated(ctx, func() error { return s.locate(ctx) })
	if err == nil {
		s.attempt.skipped.Add(s.offset.Load() - s.start)
	}
	return err
}

// create creates the upload. known stays false if an earlier process has sent a part of
// it; then locate asks for the offset.
func (s sender) create(ctx context.Context) error {
	return s.attempt.repeated(ctx, func() error {
		at, held, err := s.attempt.server.Begin(ctx, s.attempt.file(s.plan), s.described())
		if err != nil {
			return err
		}
		s.url.Store(at)
		s.offset.Store(s.start)
		s.known = held == 0
		s.plan.chunks.lose(s.first, s.last)
		return nil
	})
}

// locate asks the server for the offset of the lane, and corrects the states of its chunks.
func (s sender) locate(ctx context.Context) error {
	held, err := s.attempt.server.Held(ctx, s.attempt.file(s.plan), s.described())
	if err != nil {
		return err
	}
	offset := s.start + held.Bytes
	switch {
	case offset == s.end && s.refused:
		return protocol.ErrMismatch
	case offset > s.end:
		return fmt.Errorf("the server says that it has %d bytes of an upload of %d", held.Bytes, s.end-s.start)
	}
	for i := s.first; i < s.last; i++ {
		var theirs *uint32
		if i-s.first < len(held.CRC32C) {
			theirs = &held.CRC32C[i-s.first]
		}
		same, err := s.settle(ctx, i, offset, theirs)
		if err != nil {
			return err
		}
		if !same {
			offset = s.plan.layout.offset(i)
		}
	}
	s.offset.Store(offset)
	s.known = true
	return nil
}

// settle corrects the state of a chunk when the server has the lane's bytes before an offset.
// theirs is the CRC32C of the server; nil if it sends none. The result is false if the server
// has another content of the chunk, which has to be sent again.
func (s sender) settle(ctx context.Context, i int, offset int64, theirs *uint32) (same bool, err error) {
	from, to := s.plan.layout.offset(i), s.plan.layout.offset(i+1)
	state, sum := s.plan.chunks.state(i)
	changed := s.plan.file != s.attempt.source.at
	switch {
	case to > offset && state == ChunkDone:
		s.plan.chunks.lose(i, i+1)
	case to <= offset && state == ChunkDone && theirs != nil && *theirs != sum:
		s.plan.chunks.lose(i, i+1)
		return false, nil
	case from < offset && state != ChunkDone && changed && theirs == nil && (to > offset || sum == 0):
		return true, errUnverified
	case to <= offset && state != ChunkDone:
		now, err := s.attempt.source.sum(ctx, from, to, false)
		switch {
		case err != nil:
			return true, fmt.Errorf("%w: %w", errRead, err)
		case theirs != nil && now.crc != *theirs:
			return false, nil
		case theirs == nil && changed && now.crc != sum:
			return true, errUnverified
		}
		s.plan.chunks.done(i, now.crc)
	}
	return true, nil
}

// send sends the rest of the lane. Requests that fail are made again, from the offset that the
// server says, until too many in a row fail without one byte more.
func (s sender) send(ctx context.Context) error {
	defer func() { s.next.wait() }() // it reads the file
	b := backoff{policy: s.attempt.cfg.Retry}
	furthest := s.offset.Load()
	for !s.known || s.offset.Load() < s.end {
		var err error
		if s.known {
			err = s.sendChunk(ctx)
		} else {
			err = s.locate(ctx)
		}
		if now := s.offset.Load(); now > furthest {
			furthest, b = now, backoff{policy: s.attempt.cfg.Retry}
		}
		if err == nil {
			continue
		}
		s.known = false
		if err := s.attempt.again(ctx, &b, err); err != nil {
			return err
		}
	}
	return nil
}

// sendChunk sends the rest of the chunk at the offset in one request.
func (s sender) sendChunk(ctx context.Context) error {
	offset := s.offset.Load()
	i := int(offset / s.plan.layout.chunk)
	from, to := s.plan.layout.offset(i), s.plan.layout.offset(i+1)
	if (i > s.first || s.attempt.can.Durable) && s.attempt.synced != nil {
		if err := s.attempt.synced(); err != nil {
			return err
		}
	}
	piece := &protocol.Piece{Chunk: i, Offset: offset - s.start, Size: to - offset, Whole: -1}
	var sent sums
	if s.attempt.can.Sums {
		if s.next == nil || s.next.from != offset {
			s.next.wait()
			s.next = s.attempt.source.hash(ctx, offset, to, s.attempt.can.SHA256)
		}
		s.next.wait()
		if s.next.err != nil {
			return fmt.Errorf("%w: %w", errRead, s.next.err)
		}
		sent = s.next.sums
		piece.Sums, piece.CRC32C, piece.SHA256 = true, sent.crc, sent.sha256
		if i+1 < s.last { // while this one is sent
			s.next = s.attempt.source.hash(ctx, to, s.plan.layout.offset(i+2), s.attempt.can.SHA256)
		}
	}
	before, err := s.attempt.source.sum(ctx, from, offset, false) // the server had it already
	if err != nil {
		return fmt.Errorf("%w: %w", errRead, err)
	}
	if offset > from {
		sent.crc = 0 // it is not that of the chunk
	}
	s.plan.chunks.sending(i, sent.crc)
	content := &part{source: s.attempt.source, last: s.attempt.source.unchanged, offset: offset, end: to, crc: before.crc}
	crc, err := s.transmit(ctx, piece, content)
	if err != nil {
		if ctx.Err() == nil { // a chunk of an attempt that is over is pending
			s.plan.chunks.fail(i)
		}
		s.refused = to == s.end && errors.Is(err, protocol.ErrChecksum)
		return err
	}
	s.offset.Store(to)
	s.plan.chunks.done(i, crc)
	return nil
}

// transmit makes one request with a piece, whose content is a part of the source, and returns
// the checksum of the part.
func (s sender) transmit(ctx context.Context, piece *protocol.Piece, content *part) (uint32, error) {
	request, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	rate := s.attempt.cfg.Rate
	if rate != nil && s.attempt.job.Key != "" {
		mine := rate.Key(s.attempt.job.Key)
		rate = &mine
	}
	b := newBody(ctx, content, rate, s.attempt.cfg.Stall, &s.attempt.sent, func() { stop(protocol.ErrStalled) })
	s.sending.Store(b)
	defer s.sending.Store(nil)
	piece.Body = b
	reached, err := s.attempt.server.Send(request, s.attempt.file(s.plan), s.described(), piece)
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
