package stint

import (
	"context"
	"io"
)

// Writer writes to another writer at the rate of a [Limiter], a token a byte.
// It is made by [Limiter.Writer]. One goroutine may write while another closes.
type Writer struct {
	sink io.Writer
	*stream
}

var _ io.WriteCloser = (*Writer)(nil)

// Writer returns a writer to w that is limited to the limiter's rate, at its tier:
// that of [Limiter.At], or else the one that ctx carries ([Normal] if none). Writing
// fails with the cause of ctx when that ends. The writer holds no resource but w, and
// buffers nothing. All readers and writers of one tier get the same number of bytes,
// whatever the sizes of their reads and writes. Bytes that one has paid for in advance, at
// most a hundredth of a second's worth, are lost when it is closed.
func (l Limiter) Writer(ctx context.Context, w io.Writer) *Writer {
	return &Writer{sink: w, stream: newStream(ctx, l)}
}

// Write writes p in chunks of at most a hundredth of a second's worth, and pays
// for each chunk before it writes it. When it fails, it returns the number of bytes
// written. A chunk that the underlying writer writes only in part is paid for in full.
func (w *Writer) Write(p []byte) (written int, err error) {
	for written < len(p) {
		chunk := p[written : written+w.chunk(len(p)-written)]
		if err := w.pay(len(chunk)); err != nil {
			return written, err
		}
		n, err := w.sink.Write(chunk)
		written += max(n, 0)
		if err != nil {
			return written, err
		}
		if n < len(chunk) {
			return written, io.ErrShortWrite
		}
	}
	return written, nil
}

// Close makes a Write that waits for tokens return at once with [os.ErrClosed], as all
// later ones do. It closes the underlying writer if that is an [io.Closer].
func (w *Writer) Close() error { return w.close(w.sink) }
