package stint

// tryKey takes n ≥ 0 tokens on behalf of a key.
func (l *limiter) tryKey(key string, n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ok := (l.shared == nil || !l.shared.tooMuch(n)) && l.keys.Take(l.now(), key, n)
	l.sweeps.plan()
	return ok
}

// SetPerKey changes the rate of each key, in tokens per second; 0 is none. It takes
// effect at once, also for waiting callers. The number of tokens in a key's bucket stays the
// same; the capacity follows the rate unless it has been set, and while the rate is 0 it is
// ignored. A key that is full is full at the new capacity. It takes time in proportion to the
// remembered keys. SetPerKey panics on a rate that [NewLimiter] would not take: so it panics on
// 0 if the limiter has no rate of its own and no shared bucket.
func (l Limiter) SetPerKey(rate float64) {
	c := l.c.made()
	c.mu.Lock()
	defer c.mu.Unlock()
	cfg := c.config
	cfg.PerKey = rate
	if err := cfg.used(c.rate).Validate(c.rate); err != nil {
		panic(err)
	}
	c.config = cfg
	at := c.now()
	c.keys.Set(at, rate, worth(cfg.KeyCapacity, rate))
	c.setChunks()
	c.settle(at)
}
