package bucket_test

import (
	"errors"
	"testing"

	"github.com/stintgo/stint/internal/bucket"
)

// source is a Source whose answers are set by its fields.
type source struct {
	denies   bool
	part     int64 // what it gives at once at most, if it is not 0
	denied   bool  // denies once it has given a part
	err      error // what it answers once it has given so much
	rival    int
	debt     int64 // nanoseconds
	debts    int64
	solid    bool  // denies debts
	refuses  error // what it answers to debts
	owes     int64 // what it owes at once at most, if it is not 0
	returned int64
}

func (s *source) Draw(_ int, n int64, debt bool) (drawn, again int64, err error) {
	if debt && s.refuses != nil {
		return 0, bucket.Never, s.refuses
	}
	if debt && s.solid {
		return 0, bucket.Never, nil
	}
	if debt {
		if s.owes > 0 {
			n = min(n, s.owes)
		}
		s.debts += n
		return n, 0, nil
	}
	if s.denies {
		return 0, bucket.Never, nil
	}
	if s.part > 0 {
		n, s.part, s.denies = min(n, s.part), 0, s.denied
		return n, 0, nil
	}
	return n, 0, s.err
}

func (s *source) Return(n int64) { s.returned += n }

func (s *source) Rivals() (t int, debt int64) { return s.rival, s.debt }

func shared(s *source, rate float64, capacity int64) *bucket.Bucket {
	b := newBucket(rate, capacity)
	b.Share(s)
	return b
}

// If the source refuses an entry, and then the bucket holds too few tokens of its own for
// it, the entry no longer waits for the source, and the bucket is due when it holds them.
func TestB13_SourceQueueIsLeftForOwnTokens(t *testing.T) {
	b := shared(&source{denies: true, rival: 3}, 1, 20)
	low := queue(b, 0, 1, 10)
	queue(b, 0, 3, 15)
	if _, n, queued := b.First(); n != 15 || queued != 2 {
		t.Errorf("%d wait for %d tokens of the source", queued, n)
	}
	b.Advance(1100 * milli) // the guard admits low
	wantGranted(t, b, low)
	if _, _, queued := b.First(); queued != 0 {
		t.Errorf("%d wait for the source while the first waits for its own tokens", queued)
	}
	wantNext(t, b, 5*second)
}

// While the source is short, tokens are reserved for the first waiter, and the rest
// overflows.
func TestB13_OwnBucketHoldsNoMoreWhileTheSourceIsShort(t *testing.T) {
	s := &source{denies: true, rival: -1}
	b := shared(s, 1000, 10)
	e := queue(b, 0, 3, 30)
	b.Advance(20 * milli) // it has all of its own
	b.Advance(second)
	s.denies = false
	queue(b, second, 5, 11)
	wantGranted(t, b, e)
	wantTokens(t, b, second, 10)
	wantNext(t, b, second+milli)
}

// An entry that waits for the bucket's own rate does not count as passed over by waiters
// of other processes.
func TestB13_NoDebtForOwnTokens(t *testing.T) {
	s := &source{rival: 6}
	b := shared(s, 1, 10)
	queue(b, 0, 3, 10)
	b.Granted()
	e := queue(b, 0, 3, 10)
	for at := int64(0); at < 10*second; at += 500 * milli {
		b.Advance(at)
	}
	wantGranted(t, b)
	b.Advance(10 * second)
	wantGranted(t, b, e)
	if s.debts > 0 {
		t.Errorf("a debt of %d", s.debts)
	}
}

// An error of the source returns the tokens that the entry had, of the source and of the
// bucket itself.
func TestB13_ErrorReturnsTheTokens(t *testing.T) {
	s := &source{denies: true, rival: -1}
	b := shared(s, 1, 10)
	e := queue(b, 0, 3, 30)
	b.Advance(25 * second) // of its own it lacks 5 yet, and the bucket holds 10
	other := queue(b, 25*second, 5, 10)
	s.denies = false
	b.Advance(25 * second)
	wantGranted(t, b, other)
	s.part, s.err = 4, errors.New("the source is gone")
	b.Advance(30 * second)
	wantGranted(t, b, e)
	if !errors.Is(e.Err, s.err) || s.returned != 4 {
		t.Errorf("%v, and %d tokens were returned, want 4", e.Err, s.returned)
	}
	wantTokens(t, b, 30*second, 10)
}

// If the source refuses the debt of an entry that the guard admits, with an error, the bucket gets
// back only what the entry had of its tokens: nothing, if it had none.
func TestB13_ErrorOfADebtReturnsNoMore(t *testing.T) {
	s := &source{rival: -1, refuses: errors.New("the source is gone")}
	b := shared(s, 1, 20)
	if !b.TakeShared(0, 15) {
		t.Fatal("no tokens were taken of a full bucket")
	}
	s.denies, s.rival = true, 3
	low := queue(b, 0, 1, 10)
	high := queue(b, 0, 3, 20)
	b.Advance(1100 * milli)
	wantGranted(t, b, low)
	if !errors.Is(low.Err, s.refuses) {
		t.Errorf("the error of the entry is %v, want %v", low.Err, s.refuses)
	}
	s.denies = false
	b.Advance(14 * second)
	wantGranted(t, b) // the tokens for high have not been earned yet
	b.Advance(16 * second)
	wantGranted(t, b, high)
}

// After an entry was granted, tokens are taken only with the source's.
func TestB13_NothingIsTakenWithoutTheSource(t *testing.T) {
	b := shared(&source{rival: -1}, 1, 10)
	wantGranted(t, b, queue(b, 0, 3, 5))
	if b.Take(0, 1) == bucket.Taken {
		t.Error("a token was taken without asking the source")
	}
}

// A try that the source can serve only in part fails and returns the part.
func TestB13_TryReturnsAPart(t *testing.T) {
	s := &source{part: 4, denied: true, rival: -1}
	b := shared(s, 1, 10)
	if b.TakeShared(0, 6) {
		t.Error("6 tokens were taken of 4")
	}
	if s.returned != 4 {
		t.Errorf("%d tokens were returned, want 4", s.returned)
	}
	wantTokens(t, b, 0, 10)
}

// A part from the source is progress: the time until the guard admits the entry into debt
// begins anew.
func TestB13_PartResetsTheGuard(t *testing.T) {
	s := &source{denies: true, rival: 6}
	b := shared(s, 1, 10)
	queue(b, 0, 3, 10)
	wantNext(t, b, second)
	s.denies, s.part, s.denied = false, 4, true
	b.Advance(second / 2)
	wantNext(t, b, second/2+second)
}

// While the source is in debt no tier ages, so the guard is due a second after the debt.
func TestB13_GuardIsDueAfterTheDebtOfTheSource(t *testing.T) {
	b := shared(&source{denies: true, rival: 6, debt: 3 * second}, 1, 10)
	queue(b, 0, 3, 10)
	wantNext(t, b, 4*second)
}

func TestB13_LargestDebt(t *testing.T) {
	const most = 1 << 61
	m := bucket.NewMeter(100, 10)
	after, taken, _ := m.Take(second, 0, 1<<62, true)
	if taken != 1<<62 || after != most {
		t.Errorf("%d taken, %d spent", taken, after)
	}
	old := bucket.NewMeter(bucket.MaxRate, 10)
	if after, taken, _ := old.Take(5*365*86400*second, most, 5, true); taken != 5 || after < most {
		t.Errorf("after all that can be counted: %d taken, %d spent", taken, after)
	}
}

// The time at which the source was to be asked for a debt again does not delay the guard after
// the entry has got tokens.
func TestB13_RefusedDebtDoesNotDelayTheGuard(t *testing.T) {
	s := &source{denies: true, solid: true, rival: 6}
	b := shared(s, 1, 10)
	queue(b, 0, 3, 10)
	b.Advance(second)
	wantNext(t, b, second+bucket.Never)
	s.denies, s.part, s.denied = false, 4, true
	b.Advance(2 * second)
	wantNext(t, b, 3*second)
}

// An entry that needs more than the source may owe goes into debt for a part of it at a time.
func TestB13_OneDebtAtATime(t *testing.T) {
	s := &source{denies: true, owes: 4, rival: 6}
	b := shared(s, 1, 10)
	queue(b, 0, 3, 10)
	b.Advance(second)
	if s.debts != 4 {
		t.Errorf("a debt of %d, want 4", s.debts)
	}
	wantGranted(t, b)
}

// A try takes nothing, not even no tokens, while an entry waits elsewhere.
func TestB13_TryFailsWhileARivalWaits(t *testing.T) {
	b := shared(&source{rival: 0}, 1, 10)
	for _, n := range []int64{0, 1} {
		if b.TakeShared(0, n) {
			t.Errorf("%d tokens were taken ahead of an entry that waits elsewhere", n)
		}
	}
	wantTokens(t, b, 0, 10)
}

// The time in which the source repays a debt does not count as passed over, and neither does the
// time before a debt whose beginning is not known.
func TestB13_DebtOfTheSourceDoesNotCount(t *testing.T) {
	s := &source{denies: true, rival: 6, debt: 300 * milli}
	b := shared(s, 1, 10)
	queue(b, 0, 3, 10)
	s.debt = 0
	b.Advance(500 * milli) // 200 ms of it count
	wantNext(t, b, 1300*milli)
	s.debt = 100 * milli
	b.Advance(700 * milli) // none of the last 200 ms count
	wantNext(t, b, 1600*milli)
}
