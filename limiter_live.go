package stint

// LimiterStats is a limiter's state at one time, or that of a key.
type LimiterStats struct {
	// These are the smallest values of the limiter's own bucket, the shared one and the key's.
	// No rate counts as one of 2³⁴ tokens per second with a capacity of 2⁵⁶ tokens.
	Rate     float64    `json:"rate"`      // tokens per second
	Capacity int64      `json:"capacity"`  // tokens
	Tokens   int64      `json:"tokens"`    // in the bucket; negative in debt
	Queued   int        `json:"queued"`    // callers that wait
	QueuedBy [Tiers]int `json:"queued_by"` // by tier, lowest first
	// Keys is the number of remembered keys: those whose bucket is not full or for which a
	// caller waits, and some that have become full recently.
	Keys int `json:"keys"`
	// Shared is the state of the shared bucket, nil if there is none.
	Shared *BucketUsage `json:"shared,omitempty"`
}

// Stats returns the limiter's state. With a key it is the state of that key; otherwise it
// covers the callers of all keys and those without one.
func (l Limiter) Stats() LimiterStats { return l.c.made().stats(l.key) }

func (l *limiter) stats(key string) LimiterStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.now()
	s := LimiterStats{Tokens: l.bucket.Tokens(at), Keys: l.keys.Len()}
	s.Rate, s.Capacity = l.bucket.Rate()
	for t := range s.QueuedBy {
		s.QueuedBy[t] = l.keys.Waiting(t)
		if key != "" {
			s.QueuedBy[t] = l.keys.Queued(key, t)
		}
		s.Queued += s.QueuedBy[t]
	}
	if key != "" {
		rate, capacity := l.keys.Rate()
		s.least(rate, capacity, l.keys.Tokens(at, key))
	}
	if l.shared != nil {
		usage := l.shared.bucket.Usage()
		s.Shared = &usage
		s.least(usage.Rate, usage.Capacity, usage.Tokens)
	}
	return s
}

func (s *LimiterStats) least(rate float64, capacity, tokens int64) {
	s.Rate, s.Capacity, s.Tokens = min(s.Rate, rate), min(s.Capacity, capacity), min(s.Tokens, tokens)
}

// SetRate changes the rate, in tokens per second. It takes effect at once, also
// for waiting callers. The number of tokens in the bucket stays the same; its
// capacity follows the rate unless it has been set, and while the rate is 0, for none,
// it is ignored. A shared bucket keeps its own rate. SetRate panics on a rate that
// [NewLimiter] would not take.
func (l Limiter) SetRate(rate float64) {
	c := l.c.made()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.config.used(rate).Validate(rate); err != nil {
		panic(err)
	}
	c.set(rate, c.config)
}

// SetCapacity changes how many tokens an idle limiter saves up. 0 means one
// second's worth of the rate. The number of tokens in the bucket stays the same,
// but those beyond a smaller capacity are lost. SetCapacity panics on a number that
// [NewLimiter] would not take.
func (l Limiter) SetCapacity(n int64) {
	c := l.c.made()
	c.mu.Lock()
	defer c.mu.Unlock()
	used := c.config.used(c.rate)
	used.Capacity = n
	if err := used.Validate(c.rate); err != nil {
		panic(err)
	}
	cfg := c.config
	cfg.Capacity = n
	c.set(c.rate, cfg)
}

// set needs the lock. It reads the clock when no caller takes tokens at the old
// rate any more; see [bucket.Bucket.Take].
func (l *limiter) set(rate float64, cfg LimiterConfig) {
	l.rate, l.config = rate, cfg
	l.setChunks()
	l.bucket.Freeze()
	own, capacity := cfg.own(rate)
	at := l.now()
	l.bucket.Set(at, own, capacity)
	l.settle(at)
}
