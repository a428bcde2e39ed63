package input

import (
	"context"
	"errors"
	"io"
	"time"
)

// endAfter is how long [LateEnd] waits for a signal after the end of file: much longer than
// this process takes to receive one.
const endAfter = 100 * time.Millisecond

// LateEnd returns a reader of r for content that must be complete. Its end of file comes
// [endAfter] late, and not at all if ctx ends meanwhile: then it returns ctx's cause. A
// Ctrl-C ends all processes of a pipeline, and the end of file that the death of the writer
// causes may be read before this process has received the signal.
func LateEnd(ctx context.Context, r io.Reader) io.Reader { return &lateEnd{ctx, r} }

type lateEnd struct {
	ctx context.Context //nolint:containedctx // io.Reader has no parameter for it
	r   io.Reader
}

func (l *lateEnd) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	select {
	case <-l.ctx.Done():
	case <-time.After(endAfter):
	}
	if l.ctx.Err() != nil {
		return n, context.Cause(l.ctx)
	}
	return n, err
}
