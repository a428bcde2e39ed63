package stint

// LimiterStats is a limiter's state at one time.
type LimiterStats struct {
	// Of the limiter's own bucket and a shared one, the smaller values.
	Rate     float64    `json:"rate"`      // tokens per second
	Capacity int64      `json:"capacity"`  // tokens
	Tokens   int64      `json:"tokens"`    // in the bucket; negative in debt
	Queued   int        `json:"queued"`    // how many wait
	QueuedBy [Tiers]int `json:"queued_by"` // by tier, lowest first
	// Shared is the state of the shared bucket, nil if there is none.
	Shared *BucketUsage `json:"shared,omitempty"`
}

// Stats returns the limiter's state.
func (l Limiter) Stats() LimiterStats { return l.c.made().stats() }

func (l *limiter) stats() LimiterStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := LimiterStats{Tokens: l.bucket.Tokens(l.now())}
	s.Rate, s.Capacity = l.bucket.Rate()
	for t := range s.QueuedBy {
		s.QueuedBy[t] = l.bucket.Queued(t)
		s.Queued += s.QueuedBy[t]
	}
	if l.shared != nil {
		usage := l.shared.bucket.Usage()
		s.Shared = &usage
		s.Rate, s.Capacity = min(s.Rate, usage.Rate), min(s.Capacity, usage.Capacity)
		s.Tokens = min(s.Tokens, usage.Tokens)
	}
	return s
}

// SetRate changes the rate, in tokens per second. It takes effect at once, also
// for those who wait. What the bucket holds stays as it is; its capacity
// follows the rate unless it has been set. A bucket that is shared keeps its own
// rate. SetRate panics on a rate that [NewLimiter] would not take.
func (l Limiter) SetRate(rate float64) {
	c := l.c.made()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(rate, c.config)
}

// SetCapacity changes how many tokens an idle limiter saves up. 0 means one
// second's worth of the rate. A larger bucket is not fuller than it was; what a
// smaller one cannot hold is lost. SetCapacity panics on a number that
// [NewLimiter] would not take.
func (l Limiter) SetCapacity(n int64) {
	c := l.c.made()
	c.mu.Lock()
	defer c.mu.Unlock()
	cfg := c.config
	cfg.Capacity = n
	c.set(c.rate, cfg)
}

// set needs the lock. The clock is read once nobody takes tokens at the old
// rate any more; see [bucket.Bucket.Take].
func (l *limiter) set(rate float64, cfg LimiterConfig) {
	if err := cfg.Validate(rate); err != nil {
		panic(err)
	}
	l.rate, l.config = rate, cfg
	l.chunk.Store(cfg.chunk(rate))
	l.bucket.Freeze()
	own, capacity := cfg.own(rate)
	l.bucket.Set(l.now(), own, capacity)
	l.settle()
}
