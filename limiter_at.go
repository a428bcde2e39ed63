package stint

import (
	"context"
	"io"
	"time"
)

// LimiterAt is a [Limiter] at one tier, whatever tier a context carries. It is
// a small value, safe for concurrent use; copies share the limiter. The
// methods of the zero LimiterAt panic: see [Limiter.At].
type LimiterAt struct {
	limiter *Limiter
	tier    Priority
}

// At returns the limiter at tier p. It panics if p is not a tier.
func (l *Limiter) At(p Priority) LimiterAt {
	return LimiterAt{limiter: l.made(), tier: p.mustValid()}
}

// Wait is [Limiter.Wait] at the view's tier.
func (v LimiterAt) Wait(ctx context.Context, n int64) error {
	if done, err := v.limiter.enter(ctx, n); done {
		return err
	}
	_, err := v.limiter.wait(ctx, nil, v.tier, n, n)
	return err
}

// Try is [Limiter.Try]: the tier makes no difference, as it takes nothing while
// anybody waits.
func (v LimiterAt) Try(n int64) bool { return v.limiter.Try(n) }

// Delay is [Limiter.Delay] at the view's tier.
func (v LimiterAt) Delay(n int64) time.Duration {
	l := v.limiter.made()
	if n < 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delay(v.tier, n)
}

// Reader is [Limiter.Reader] at the view's tier.
func (v LimiterAt) Reader(ctx context.Context, r io.Reader) *Reader {
	return &Reader{source: r, stream: newStream(ctx, v)}
}

// Writer is [Limiter.Writer] at the view's tier.
func (v LimiterAt) Writer(ctx context.Context, w io.Writer) *Writer {
	return &Writer{sink: w, stream: newStream(ctx, v)}
}

// Why says what would keep an entry of one token waiting at the view's tier
// now, the reason that binds first; none if it would be admitted at once. It
// tells of those who go first ([CodeBehind]), of the tokens that are short and when
// the bucket will have them if nobody goes first ([CodeRate]), and of both where
// the rate is shared ([CodeShared]).
func (v LimiterAt) Why() []Reason { return v.limiter.why(v.tier) }
