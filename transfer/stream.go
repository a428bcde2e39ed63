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

// stream uploads Config.Input, whose length is known at its end. One chunk of it is in memory,
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
		if err := a.sendBuffer(ctx, p, buffer[:n], last); err != nil {
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
func (a *attempt) sendBuffer(ctx context.Context, p *plan, chunk []byte, last bool) error {
	l := p.lanes[0]
	from := l.offset.Load()
	b, furthest := backoff{policy: a.cfg.Retry}, from
	for {
		err := a.tryBuffer(ctx, p, from, chunk, last)
		if err == nil {
			return nil
		}
		if now := l.offset.Load(); now > furthest {
			furthest, b = now, backoff{policy: a.cfg.Retry}
		}
		l.known = false
		if err := a.again(ctx, &b, err); err != nil {
			return err
		}
	}
}

// tryBuffer makes one request with what the server does not have of a chunk that begins at
// from.
func (a *attempt) tryBuffer(ctx context.Context, p *plan, from int64, chunk []byte, last bool) error {
	l := p.lanes[0]
	end := from + int64(len(chunk))
	if !l.known {
		held, err := a.server.Held(ctx, a.file(p), l.described())
		if err != nil {
			return err
		}
		at := held.Bytes
		if at < from || at > end {
			return fmt.Errorf("the server has %d bytes of the input, and the client bytes %d to %d", at, from, end)
		}
		l.offset.Store(at)
		l.known = true
	}
	at := l.offset.Load()
	piece := &protocol.Piece{Chunk: int(from / p.layout.chunk), Offset: at, Size: end - at, Whole: -1}
	if last {
		piece.Whole = end
	} else if at == end {
		return nil // the answer to an earlier request was lost
	}
	if a.can.Sums {
		piece.Sums, piece.CRC32C = true, crc32.Checksum(chunk[at-from:], castagnoli())
	}
	if a.can.SHA256 {
		sum := sha256.Sum256(chunk[at-from:])
		piece.SHA256 = sum[:]
	}
	content := &part{source: bytes.NewReader(chunk), offset: at - from, end: end - from}
	if _, err := a.transmit(ctx, p, l, piece, content); err != nil {
		return err
	}
	l.offset.Store(end)
	return nil
}
