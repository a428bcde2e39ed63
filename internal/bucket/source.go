package bucket

// Source is a second source of tokens, for a bucket that is one process's part of a
// shared rate: a granted entry has got its tokens from both the bucket and the source.
// All methods are called by those of [Bucket] that need the caller's lock.
type Source interface {
	// Draw takes n ≥ 1 tokens for the first entry of a tier, or the part that the
	// source can hold at once, or none. If it takes none, again is how many
	// nanoseconds to wait before asking again, at least 1, or [Never] if
	// [Bucket.Advance] will be called. With debt, it takes what the source may owe.
	Draw(t int, n int64, debt bool) (drawn, again int64, err error)
	// Return puts tokens back.
	Return(n int64)
	// Rivals returns the highest tier that waits elsewhere, or -1, and how many
	// nanoseconds a debt of the source will last.
	Rivals() (t int, debt int64)
}

// rivals is the state of a source at the last look.
type rivals struct {
	top   int   // the highest tier that waits elsewhere; 0 and less are all the same
	until int64 // when its debt ends
	again int64 // when to ask again for tokens that the first entry was refused; 0: it was not refused
	debt  int64 // the same, for an entry that would go into debt
}

// Share makes b take all tokens from source as well. It is called before all other
// methods except [Bucket.Init]. From then on all takers need the lock: [Bucket.Take]
// returns [Queued].
func (b *Bucket) Share(source Source) {
	b.source, b.shared = source, true
	b.word.Or(flagLocked)
}

// TakeShared is [Bucket.Take] for a bucket with a source. It needs the lock.
func (b *Bucket) TakeShared(now, n int64) bool {
	b.enter(now)
	defer b.leave(b.queued > 0)
	if b.queued > 0 || b.holds(now) < n && n > 0 {
		return false
	}
	if rival, _ := b.source.Rivals(); rival >= 0 {
		return false
	}
	if n > 0 && !b.drawAll(n) {
		return false
	}
	b.spend(n)
	return true
}

// drawAll takes n tokens of the source, or none.
func (b *Bucket) drawAll(n int64) bool {
	drawn, _, err := b.source.Draw(0, n, false)
	if 0 < drawn && drawn < n {
		b.source.Return(drawn)
	}
	return err == nil && drawn == n
}

// draw takes the tokens that the first entry of a tier needs from the source, and
// reports whether it has all of them now. If not, again is when to ask again.
func (b *Bucket) draw(now int64, t int, debt bool) (ok bool, again int64) {
	if b.source == nil {
		return true, 0
	}
	e := b.tiers[t].head
	for e.owed > 0 {
		drawn, wait, err := b.source.Draw(t, e.owed, debt)
		if err != nil {
			b.putBack(now, e)
			e.Err = err
			b.tiers[t].pay(e.need)
			e.asked, e.owed = 0, 0
			return true, 0
		}
		if drawn == 0 {
			return false, now + max(wait, 1)
		}
		b.tiers[t].behind = 0
		if e.owed -= drawn; debt {
			break
		}
	}
	return e.owed == 0, 0
}

// look returns the present state of the source.
func (b *Bucket) look(now int64) (seen rivals) {
	if b.source != nil {
		top, debt := b.source.Rivals()
		seen = rivals{top: top, until: now + debt}
	}
	return seen
}
