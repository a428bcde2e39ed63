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

// supply is the source of a bucket, if it has one, and its state at the last look. Without a
// source no entry is owed anything, and nothing is drawn.
type supply struct {
	source    Source
	rival     int   // the highest tier that waits elsewhere; 0 and less are all the same
	solvent   int64 // when its debt ends
	again     int64 // when to ask again for tokens that the first entry was refused; 0: it was not refused
	debtAgain int64 // the same, for an entry that would go into debt
}

// look asks for the present state of the source.
func (s *supply) look(now int64) {
	s.again, s.debtAgain = 0, 0
	if s.source != nil {
		rival, debt := s.source.Rivals()
		s.rival, s.solvent = rival, now+debt
	}
}

// draw takes the tokens that e is owed, as far as the source has them now, and reports
// whether it took some.
func (s *supply) draw(now int64, e *Entry, debt bool) (some bool, err error) {
	for e.owed > 0 {
		drawn, again, err := s.source.Draw(e.tier, e.owed, debt)
		switch {
		case err != nil:
			return some, err
		case drawn == 0 && debt:
			s.debtAgain = now + max(again, 1)
			return some, nil
		case drawn == 0:
			s.again = now + max(again, 1)
			return some, nil
		}
		some = true
		if e.owed -= drawn; debt {
			break
		}
	}
	return some, nil
}

// take takes n tokens for a caller that does not wait, or none: it takes none while an entry
// waits elsewhere.
func (s *supply) take(n int64) bool {
	if rival, _ := s.source.Rivals(); rival >= 0 || n == 0 {
		return rival < 0
	}
	drawn, _, err := s.source.Draw(0, n, false)
	if 0 < drawn && drawn < n {
		s.source.Return(drawn)
	}
	return err == nil && drawn == n
}
