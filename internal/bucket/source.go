package bucket

// Source is where tokens come from as well, if the bucket is one process's part of
// a rate that others share. An entry that is granted has had its tokens of both.
// All methods are called by those of [Bucket] that need the caller's lock.
type Source interface {
	// Draw takes n ≥ 1 tokens for the first in line of a tier, or the part that the
	// source can hold at once, or none. If it takes none, again is how many
	// nanoseconds to wait until that is worth asking again, at least 1, or [Never]
	// if [Bucket.Advance] will be called. A debt is taken whole.
	Draw(t int, n int64, debt bool) (drawn, again int64, err error)
	// Return gives tokens back.
	Return(n int64)
	// Rivals returns the highest tier that waits elsewhere, or -1, and how many
	// nanoseconds a debt of the source will last.
	Rivals() (t int, debt int64)
}

// rivals is what was last seen of a source.
type rivals struct {
	top   int   // the highest tier that waits elsewhere; 0 and less are all the same
	until int64 // when its debt ends
	again int64 // when it is worth asking for tokens again, which the first in line was refused
	debt  int64 // the same, for one that would go into debt
}

// Share makes b a part of what source has. It is called before all other methods
// but [Bucket.Init]. From then on all takers need the lock: [Bucket.Take] answers
// [Queued].
func (b *Bucket) Share(source Source) {
	b.source = source
	b.word.Or(flagQueued)
}

// TakeShared is what [Bucket.Take] is for a bucket without a source. It needs the
// lock.
func (b *Bucket) TakeShared(now, n int64) bool {
	b.enter(now)
	defer b.leave()
	if b.queued > 0 || b.current.earned(now)-b.spent < n && n > 0 {
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

// draw takes what the first in line of a tier needs of the source, and reports
// whether it has all of it now. If it has not, again is when to ask again.
func (b *Bucket) draw(now int64, t int, debt bool) (ok bool, again int64) {
	if b.source == nil {
		return true, 0
	}
	e := b.tiers[t].head
	for e.owed > 0 {
		drawn, wait, err := b.source.Draw(t, e.owed, debt)
		if err != nil {
			b.giveBack(now, e)
			e.Err = err
			b.tiers[t].pay(e.need)
			e.asked, e.owed = 0, 0
			return true, 0
		}
		if drawn == 0 {
			return false, now + max(wait, 1)
		}
		b.tiers[t].behind = 0
		e.owed -= drawn
	}
	return true, 0
}

// look returns what others want of the source.
func (b *Bucket) look(now int64) (seen rivals) {
	if b.source != nil {
		top, debt := b.source.Rivals()
		seen = rivals{top: top, until: now + debt}
	}
	return seen
}
