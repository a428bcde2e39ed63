package input

import (
	"context"
	"errors"
	"io"
	"time"
)

// endAfter is how long [DelayEOF] waits for a signal after the end of file: much longer than
// this process takes to receive one.
const endAfter = 100 * time.Millisecond

// DelayEOF returns a reader of r for content that must be complete. Its end of file comes
// [endAfter] late, and not at all if ctx ends meanwhile: then it returns ctx's cause. A
// Ctrl-C ends all processes of a pipeline, and the end of file that the death of the writer
// causes may be read before this process has received the signal.
func DelayEOF(ctx context.Context, r io.Reader) io.Reader { return &delayedEOF{ctx, r} }

type delayedEOF struct {
	ctx context.Context //nolint:containedctx // io.Reader has no parameter for it
	r   io.Reader
}

func (d *delayedEOF) Read(b []byte) (int, error) {
	n, err := d.r.Read(b)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	select {
	case <-d.ctx.Done():
	case <-time.After(endAfter):
	}
	if d.ctx.Err() != nil {
		return n, context.Cause(d.ctx)
	}
	return n, err
}
