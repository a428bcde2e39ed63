package limiter

import (
	"context"
	"io"
	"time"

	jujulimit "github.com/juju/ratelimit"
	"golang.org/x/time/rate"

	"github.com/stintgo/stint/bench/measure"
)

const (
	copyRate  = 100_000_000 // bytes per second
	copyBurst = 64 << 10    // bytes, two thirds of a millisecond's worth
	copyChunk = 32 << 10    // bytes in one read, which is io.Copy's own size
	copies    = 4           // streams that share the rate
)

// copying is the accuracy for streams, whose tokens are bytes and come in
// chunks of half a bucket.
func copying() measure.Case {
	return measure.Case{
		Name:     "4 copies share 100 MB/s, burst 64 KiB",
		Ours:     ours,
		Readings: paceReadings(),
		Goals:    paceGoals(),
		Subjects: []measure.Subject{
			{Name: ours, Probe: copyPace(copyStint)},
			{Name: xtime, Probe: copyPace(copyXTime)},
			{Name: juju, Probe: copyPace(copyJuju)},
		},
	}
}

// throttle wraps a reader so that it reads no faster than the limiter lets it.
type throttle func(ctx context.Context, r io.Reader) io.Reader

func copyPace(prepare func() throttle) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		p := &pace{window: st.Span(500 * time.Millisecond)}
		wrap := prepare()
		return p.run(copies, copyRate, func(ctx context.Context) {
			r := wrap(ctx, endless{ctx})
			// It ends with the context's error, as expected.
			_, _ = io.CopyBuffer(counter{p}, r, make([]byte, copyChunk))
		}), nil
	}
}

func copyStint() throttle {
	l := bucket(copyRate, copyBurst)
	return func(ctx context.Context, r io.Reader) io.Reader { return l.Reader(ctx, r) }
}

func copyXTime() throttle {
	l := rate.NewLimiter(copyRate, copyBurst)
	return func(ctx context.Context, r io.Reader) io.Reader { return waitingReader{ctx, r, l} }
}

func copyJuju() throttle {
	b := jujulimit.NewBucketWithRate(copyRate, copyBurst)
	return func(_ context.Context, r io.Reader) io.Reader { return jujulimit.Reader(r, b) }
}

// waitingReader is a reader as users of x/time/rate write it around a stream.
type waitingReader struct {
	ctx     context.Context //nolint:containedctx // io.Reader has no room for one
	r       io.Reader
	limiter *rate.Limiter
}

func (w waitingReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil {
		return n, err
	}
	return n, w.limiter.WaitN(w.ctx, n)
}

// endless fills each buffer, until its context ends.
type endless struct {
	ctx context.Context //nolint:containedctx // io.Reader has no room for one
}

func (e endless) Read(p []byte) (int, error) { return len(p), e.ctx.Err() }

// counter is a writer that counts. It has no ReadFrom, unlike io.Discard,
// whose own would read in smaller chunks.
type counter struct{ pace *pace }

func (c counter) Write(p []byte) (int, error) {
	c.pace.add(len(p))
	return len(p), nil
}
