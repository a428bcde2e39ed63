package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/stintgo/stint/retry"
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
		return errInput(errors.New("this worker has no input, another one, or has read it before; store the content in " +
			"a file, and upload that"))
	}
	var err error
	if a.can, err = h.abilities(ctx, a); err != nil {
		return errInput(err)
	}
	if !a.can.has("creation-defer-length") {
		return errInput(errors.New("the server does not take uploads of unknown length (creation-defer-length); store " +
			"the content in a file, and upload that"))
	}
	err = a.measured(ctx, a.sendInput)
	if err != nil && ctx.Err() == nil {
		return errInput(err)
	}
	return err
}

// sendInput creates the upload and sends the input chunk by chunk.
func (a *attempt) sendInput(ctx context.Context) error {
	chunk := a.job.Args.ChunkSize
	if chunk <= 0 {
		chunk = DefaultChunkSize
	}
	p := newPlan(layout{chunk: chunk, lanes: 1}, fingerprint{}, "")
	l := p.lanes[0]
	fields := http.Header{}
	fields.Set("Upload-Defer-Length", "1")
	fields.Set("Upload-Metadata", metadata(a.job.Args.metadata("")))
	err := a.repeated(ctx, func() error {
		at, err := a.client.create(ctx, fields)
		if err == nil {
			l.url.Store(at)
			l.known = true
		}
		return a.client.reachable(err)
	})
	if err != nil {
		return err
	}
	a.plan.Store(p)
	buffer := make([]byte, chunk)
	for last := false; !last; {
		n, err := readChunk(ctx, a.cfg.Input, buffer)
		if last = errors.Is(err, io.EOF); err != nil && !last {
			return err
		}
		if err := a.sendBuffer(ctx, l, buffer[:n], last); err != nil {
			return err
		}
	}
	return a.job.Return(Result{URL: l.url.Load().String(), Size: l.offset.Load(), Sent: a.sent.Load()})
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
func (a *attempt) sendBuffer(ctx context.Context, l *lane, chunk []byte, last bool) error {
	from := l.offset.Load()
	b, furthest := backoff{policy: a.cfg.Retry}, from
	for {
		err := a.tryBuffer(ctx, l, from, chunk, last)
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
func (a *attempt) tryBuffer(ctx context.Context, l *lane, from int64, chunk []byte, last bool) error {
	end := from + int64(len(chunk))
	if !l.known {
		at, err := a.client.offset(ctx, l.url.Load())
		if err != nil {
			return err
		}
		if at < from || at > end {
			return fmt.Errorf("the server has %d bytes of the input, and the client bytes %d to %d", at, from, end)
		}
		l.offset.Store(at)
		l.known = true
	}
	at := l.offset.Load()
	fields := http.Header{}
	if last {
		fields.Set("Upload-Length", strconv.FormatInt(end, 10))
	} else if at == end {
		return nil // the answer to an earlier request was lost
	}
	if a.can.sha256 {
		sum := sha256.Sum256(chunk[at-from:])
		fields.Set("Upload-Checksum", checksum(sum[:]))
	}
	content := &part{source: bytes.NewReader(chunk), offset: at - from, end: end - from}
	if _, err := a.patch(ctx, l, at, content, fields); err != nil {
		return err
	}
	l.offset.Store(end)
	return nil
}
