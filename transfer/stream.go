package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/transfer/internal/protocol"
)

// errInput is the error of an upload of Input that another attempt cannot help.
func errInput(err error) error {
	return retry.Permanent(fmt.Errorf("upload of the input, which can be read once: %w", err))
}

// stream uploads Config.Input, whose length is known only at its end. One chunk of it is in memory,
// so that a request that fails can be repeated. There is no second attempt.
func (a *attempt) stream(ctx context.Context, h *handler) error {
	h.mu.Lock()
	usable := h.cfg.Input != nil && !h.input && h.cfg.InputName == a.job.Args.InputName
	h.input = h.input || usable
	h.mu.Unlock()
	if !usable {
		a.forget(ctx, h)
		return errInput(errors.New("this worker has no input, another one, or has read it before; store the content in " +
			"a file, and upload that"))
	}
	var err error
	if a.can, err = h.abilities(ctx, a); err != nil {
		return errInput(err)
	}
	if !a.can.Deferred {
		return errInput(errors.New("the server does not take uploads of unknown length (creation-defer-length); store " +
			"the content in a file, and upload that"))
	}
	err = a.measured(ctx, a.sendInput)
	if err != nil && ctx.Err() == nil {
		return errInput(err)
	}
	return err
}

// forget deletes what an attempt whose process has died left at the server.
func (a *attempt) forget(ctx context.Context, h *handler) {
	p, err := decodePlan(a.job.Checkpoint)
	if err != nil { // there was no such attempt
		return
	}
	if a.can, err = h.abilities(ctx, a); err != nil {
		return
	}
	a.plan.Store(p)
	a.abandon(ctx)
}

// sendInput creates the upload and sends the input chunk by chunk.
func (a *attempt) sendInput(ctx context.Context) error {
	chunk := a.chunkSize(DefaultChunkSize / 2)
	p := newPlan(layout{chunk: chunk, lanes: 1}, fingerprint{}, "")
	l := p.lanes[0]
	err := a.repeated(ctx, func() error {
		at, _, err := a.server.Begin(ctx, a.file(p), l.described())
		if err == nil {
			l.url.Store(at)
			l.known = true
		}
		return err
	})
	if err != nil {
		return err
	}
	a.plan.Store(p)
	if a.can.Durable { // so that the worker after this one can delete it
		a.job.Save(p.encode())
		if err := a.job.Sync(ctx); err != nil {
			return err
		}
	}
	buffer := make([]byte, chunk)
	for last := false; !last; {
		n, err := readChunk(ctx, a.cfg.Input, buffer)
		if last = errors.Is(err, io.EOF); err != nil && !last {
			return err
		}
		if err := a.sender(p, 0).sendBuffer(ctx, buffer[:n], last); err != nil {
			return err
		}
	}
	at := l.url.Load().String()
	if a.can.Commit {
		err = a.repeated(ctx, func() (err error) {
			at, err = a.server.Complete(ctx, a.file(p), p.locations())
			return err
		})
		if err != nil {
			return err
		}
	}
	return a.job.Return(Result{URL: at, Size: l.offset.Load(), Sent: a.sent.Load()})
}

// readChunk fills a buffer. Its error is io.EOF if the input has ended, also with n > 0. The end
// of ctx is noticed between two reads.
func readChunk(ctx context.Context, input io.Reader, buffer []byte) (n int, err error) {
	for n < len(buffer) && err == nil {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		var more int
		more, err = input.Read(buffer[n:])
		n += more
	}
	return n, err
}

// sendBuffer sends one chunk of the input, as often as necessary. The last one has the length
// of the whole.
func (s sender) sendBuffer(ctx context.Context, chunk []byte, last bool) error {
	from := s.offset.Load()
	b, furthest := backoff{policy: s.attempt.cfg.Retry}, from
	for {
		err := s.tryBuffer(ctx, from, chunk, last)
		if err == nil {
			return nil
		}
		if now := s.offset.Load(); now > furthest {
			furthest, b = now, backoff{policy: s.attempt.cfg.Retry}
		}
		s.known = false
		if err := s.attempt.again(ctx, &b, err); err != nil {
			return err
		}
	}
}

// tryBuffer makes one request with what the server does not have of a chunk that begins at
// from.
func (s sender) tryBuffer(ctx context.Context, from int64, chunk []byte, last bool) error {
	end := from + int64(len(chunk))
	if !s.known {
		held, err := s.attempt.server.Held(ctx, s.attempt.file(s.plan), s.described())
		if err != nil {
			return err
		}
		at := held.Bytes
		if at < from || at > end {
			return fmt.Errorf("the server has %d bytes of the input, and the client bytes %d to %d", at, from, end)
		}
		s.offset.Store(at)
		s.known = true
	}
	at := s.offset.Load()
	piece := &protocol.Piece{Chunk: int(from / s.plan.layout.chunk), Offset: at, Size: end - at, Whole: -1}
	if last {
		piece.Whole = end
	} else if at == end {
		return nil // the answer to an earlier request was lost
	}
	if s.attempt.can.Sums {
		piece.Sums, piece.CRC32C = true, crc32.Checksum(chunk[at-from:], castagnoli())
	}
	if s.attempt.can.SHA256 {
		sum := sha256.Sum256(chunk[at-from:])
		piece.SHA256 = sum[:]
	}
	content := &part{source: bytes.NewReader(chunk), offset: at - from, end: end - from}
	if _, err := s.transmit(ctx, piece, content); err != nil {
		return err
	}
	s.offset.Store(end)
	return nil
}
