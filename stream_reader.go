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

// Read reads at most a hundredth of a second's worth of bytes, and then pays for
// them. It pays afterwards because only then the number of bytes is known: paying
// first would keep tokens from other callers while Read waits for the underlying
// reader, and tokens would have to be put back after a short read. If the reader is
// closed or its context ends while Read waits for tokens, Read returns the bytes that
// it has read together with the error.
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

// Close makes a Read that waits for tokens return at once with [os.ErrClosed], as all
// later ones do. It closes the underlying reader if that is an [io.Closer].
func (r *Reader) Close() error { return r.close(r.source) }
