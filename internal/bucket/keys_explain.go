package bucket

// Earliest returns when an entry for n tokens that came to tier t of a key now could be
// admitted at the earliest, as [Bucket.Earliest] does: by the key's bucket and, unless n
// is 0, by the shared one.
func (k *Keys) Earliest(now int64, name string, t int, n int64) int64 {
	own := k.ask(now, name, func(b *Bucket) int64 { return b.Earliest(now, t, n) }, n)
	if n == 0 {
		return own
	}
	return max(own, k.shared.bucket.Earliest(now, t, n))
}

// VacantAt returns when [Keys.Take] could take n ≥ 0 tokens at the earliest, as
// [Bucket.VacantAt] does.
func (k *Keys) VacantAt(now int64, name string, n int64) int64 {
	if n > k.curve.capacity {
		return Never
	}
	own := k.ask(now, name, func(b *Bucket) int64 { return b.VacantAt(now, n) }, n)
	return max(own, k.shared.bucket.VacantAt(now, n))
}

// FreeAt returns when a key's bucket will hold n tokens if no call takes any.
func (k *Keys) FreeAt(now int64, name string, n int64) int64 {
	return k.ask(now, name, func(b *Bucket) int64 { return b.FreeAt(now, n) }, n)
}

// Tokens returns what a key's bucket holds: negative in debt.
func (k *Keys) Tokens(now int64, name string) int64 {
	known := k.keys[name]
	if known != nil && known.queue != nil {
		return known.queue.bucket.Tokens(now)
	}
	return k.holds(now, known)
}

// ask returns a time that depends on what a key's bucket holds: what its bucket says, or
// when there are n tokens if no entry waits for it.
func (k *Keys) ask(now int64, name string, bucketSays func(*Bucket) int64, n int64) int64 {
	known := k.keys[name]
	if known == nil || known.queue == nil {
		return k.freeAt(now, known, n)
	}
	k.shared.now = now
	at := bucketSays(&known.queue.bucket)
	k.settle(known.queue)
	return at
}

// Queued returns how many wait in a tier for a key.
func (k *Keys) Queued(name string, t int) int {
	if known := k.keys[name]; known != nil && known.queue != nil {
		return known.queue.bucket.Queued(t)
	}
	return 0
}

// Waiting returns how many entries of a tier wait, for all keys and for the shared bucket
// without a key.
func (k *Keys) Waiting(t int) int {
	return k.shared.bucket.Queued(t) - k.shared.claims[t] + k.waiting[t]
}

// Queue is what waits for a key.
type Queue struct {
	Key     string
	Holds   int64 // tokens
	Waiting []Waiting
}

// Queues returns the keys for which an entry waits, in no order. In what [Bucket.Waiting]
// says of the shared bucket, entries with a key stand for the first waiter of that key.
// Both have been advanced to now.
func (k *Keys) Queues(now int64) []Queue {
	queues := make([]Queue, 0, len(k.due))
	for _, q := range k.due {
		queues = append(queues, Queue{
			Key: q.key.name, Holds: q.bucket.Tokens(now), Waiting: q.bucket.Waiting(now),
		})
	}
	return queues
}
