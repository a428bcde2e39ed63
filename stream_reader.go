package stint

import (
	"context"
	"io"
)

// Reader reads from another reader at the rate of a [Limiter], a token a byte.
// It is made by [Limiter.Reader]. One goroutine may read while another closes.
type Reader struct {
	source io.Reader
	*stream
}

var _ io.ReadCloser = (*Reader)(nil)

// Reader returns a reader of r that is limited to the limiter's rate, at its tier:
// that of [Limiter.At], or else the one that ctx carries ([Normal] if none). Reading
// fails with the cause of ctx when that ends. The reader holds no resource but r.
func (l Limiter) Reader(ctx context.Context, r io.Reader) *Reader {
	return &Reader{source: r, stream: newStream(ctx, l)}
}

// Read reads at most a hundredth of a second's worth of bytes and pays for what
// it got. It pays afterwards because only then it knows how much: a reader that
// paid first would keep tokens from others while it waits for its source, and
// would have to give back what a short read did not use. When it is closed or
// its context ends while it waits, the bytes that it has read come along with
// the error.
func (r *Reader) Read(p []byte) (int, error) {
	if err := r.usable(); err != nil {
		return 0, err
	}
	n, err := r.source.Read(p[:r.chunk(len(p))])
	if n <= 0 {
		return n, err
	}
	if unpaid := r.pay(n); unpaid != nil {
		return n, unpaid
	}
	return n, err
}

// Close makes a Read that waits return at once, with [os.ErrClosed], as do all
// later ones. It closes the reader underneath if that is an [io.Closer].
func (r *Reader) Close() error { return r.close(r.source) }
