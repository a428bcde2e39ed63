package stint

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/internal/bucket"
)

// limiter is the state that the copies of a [Limiter] share.
type limiter struct {
	start  time.Time // times are nanoseconds since then
	bucket bucket.Bucket
	shared *sharing // nil if the tokens are the limiter's own

	mu     sync.Mutex // guards the fields up to sweeps, and is the lock that bucket's methods need
	keys   bucket.Keys
	rate   float64 // its own; 0: none
	config LimiterConfig
	timer  *time.Timer // runs only while an entry waits
	due    int64       // when it fires, or 0
	sweeps sweeper

	entries  sync.Pool    // of *bucket.Entry
	chunk    atomic.Int64 // bytes that a stream pays for at once
	keyChunk atomic.Int64 // the same, on behalf of a key
}

func newLimiter(rate float64, cfg LimiterConfig) *limiter {
	l := &limiter{
		start:  now(),
		rate:   rate,
		config: cfg,
	}
	l.sweeps.l = l
	l.bucket.Init(cfg.own(rate))
	if cfg.Bucket != nil {
		l.share(cfg.Bucket)
	}
	l.keys.Init(&l.bucket)
	if cfg.PerKey != 0 {
		l.keys.Set(0, cfg.PerKey, worth(cfg.KeyCapacity, cfg.PerKey))
	}
	l.setChunks()
	return l
}

// made returns l, and panics if that is nil: the limiter of a zero [Limiter].
func (l *limiter) made() *limiter {
	if l == nil {
		panic("stint: zero Limiter: make one with NewLimiter")
	}
	return l
}

// now reads the monotonic clock. Each operation reads the time; there is no tick.
// [time.Since] reads only this clock, while [time.Now] also reads the time of day
// and takes half as long again.
func (l *limiter) now() int64 {
	return int64(time.Since(l.start)) //nolint:forbidigo // most of what Try costs is this reading
}

// try takes n ≥ 0 tokens at the time now, after [bucket.Bucket.Look] has not found them.
func (l *limiter) try(now, n int64) bool {
	verdict := l.bucket.Take(now, n)
	for verdict == bucket.Changing {
		l.awaitChange()
		verdict = l.bucket.Take(l.now(), n)
	}
	if verdict == bucket.Queued && l.shared != nil {
		return l.tryShared(n)
	}
	return verdict == bucket.Taken
}

// awaitChange waits for the end of a change of rate that is in progress, which takes
// less than a microsecond.
func (l *limiter) awaitChange() {
	l.mu.Lock()
	defer l.mu.Unlock()
}

// enter is the part of a wait before the queue: it refuses invalid requests, and takes
// the tokens if they are available at once. done reports that the wait is over.
func (l *limiter) enter(ctx context.Context, key string, n int64) (done bool, err error) {
	l.made()
	if n < 0 {
		return true, ErrNegative
	}
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	if key != "" {
		return l.tryKey(key, n), nil
	}
	now := l.now()
	if spent, enough := l.bucket.Look(now, n); enough && l.bucket.Claim(spent, n) {
		return true, nil
	}
	return l.bucket.Take(now, n) == bucket.Taken, nil
}
