package bucket_test

import (
	"math"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/bucket"
	"github.com/stintgo/stint/internal/seeded"
)

const (
	milli  = int64(time.Millisecond)
	second = int64(time.Second)
)

func newBucket(rate float64, capacity int64) *bucket.Bucket {
	b := &bucket.Bucket{}
	b.Init(rate, capacity)
	return b
}

// queue pushes an entry for n tokens.
func queue(b *bucket.Bucket, now int64, tier int, n int64) *bucket.Entry {
	e := &bucket.Entry{}
	b.Push(now, e, tier, n)
	return e
}

// wantGranted checks which entries have been granted since the last look.
func wantGranted(t *testing.T, b *bucket.Bucket, want ...*bucket.Entry) {
	t.Helper()
	for i, w := range want {
		if got := b.Granted(); got != w {
			t.Fatalf("grant %d of %d is %p, want %p", i+1, len(want), got, w)
		}
	}
	if b.Granted() != nil {
		t.Fatalf("more than %d granted", len(want))
	}
}

func wantTokens(t *testing.T, b *bucket.Bucket, now, want int64) {
	t.Helper()
	if got := b.Tokens(now); got != want {
		t.Fatalf("%d tokens after %v, want %d", got, time.Duration(now), want)
	}
}

func wantNext(t *testing.T, b *bucket.Bucket, want int64) {
	t.Helper()
	if got, ok := b.Next(); !ok || got != want {
		t.Fatalf("next at %v, %t, want %v", time.Duration(got), ok, time.Duration(want))
	}
}

func TestB10_TakeUntilEmpty(t *testing.T) {
	b := newBucket(1000, 10)
	for _, step := range []struct {
		now, n int64
		want   bucket.Verdict
		left   int64
	}{
		{0, 11, bucket.Short, 10},
		{0, 4, bucket.Taken, 6},
		{0, 7, bucket.Short, 6},
		{0, 6, bucket.Taken, 0},
		{0, 0, bucket.Taken, 0},
		{milli - 1, 1, bucket.Short, 0},
		{milli, 1, bucket.Taken, 0},
		{second, 0, bucket.Taken, 10},
		{second, math.MaxInt64, bucket.Short, 10},
		{2 * second, 10, bucket.Taken, 0},
	} {
		if got := b.Take(step.now, step.n); got != step.want {
			t.Errorf("take %d after %v: %d, want %d", step.n, time.Duration(step.now), got, step.want)
		}
		wantTokens(t, b, step.now, step.left)
	}
}

// TestB10_OlderTimeAdmitsNothing is the fault of limiters that store the time
// of the last call: a caller that read the clock first and comes second sets it
// back, and the time between the two is paid for twice.
func TestB10_OlderTimeAdmitsNothing(t *testing.T) {
	b := newBucket(1000, 10)
	b.Take(0, 10)
	taken := int64(0)
	for range 1000 {
		for _, now := range []int64{100 * milli, 50 * milli, 0, 99 * milli} {
			if b.Take(now, 1) == bucket.Taken {
				taken++
			}
		}
	}
	if taken != 10 {
		t.Errorf("%d tokens taken of a bucket that holds 10", taken)
	}
}

func TestB10_HigherTiersFirst(t *testing.T) {
	b := newBucket(1000, 10)
	b.Take(0, 10)
	low1, low2 := queue(b, 0, 2, 2), queue(b, 0, 2, 2)
	high := queue(b, milli, 4, 3)
	if b.Take(10*milli, 1) != bucket.Queued {
		t.Error("taken past the waiters")
	}
	wantNext(t, b, 3*milli)
	b.Advance(3 * milli)
	wantGranted(t, b, high)
	wantNext(t, b, 5*milli)
	b.Advance(7 * milli)
	wantGranted(t, b, low1, low2)
	if _, ok := b.Next(); ok {
		t.Error("something is due, and the queue is empty")
	}
}

// TestB10_HigherTierUsesWhatIsThere: tokens that are being saved up for one of
// a lower tier are not out of reach of a higher one.
func TestB10_HigherTierUsesWhatIsThere(t *testing.T) {
	b := newBucket(1000, 10)
	b.Take(0, 10)
	low := queue(b, 0, 2, 10)
	high := queue(b, 9*milli, 4, 9)
	wantGranted(t, b, high)
	wantNext(t, b, 19*milli)
	b.Advance(19 * milli)
	wantGranted(t, b, low)
}

func TestB10_ZeroKeepsItsPlace(t *testing.T) {
	b := newBucket(1000, 10)
	first := queue(b, 0, 3, 0)
	wantGranted(t, b, first)
	b.Take(0, 10)
	one := queue(b, 0, 3, 1)
	behind, behind2 := queue(b, 0, 3, 0), queue(b, 0, 3, 0)
	wantGranted(t, b)
	other := queue(b, 0, 1, 0) // in a lower tier, but the first one there
	wantGranted(t, b, other)
	b.Advance(milli)
	wantGranted(t, b, one, behind, behind2)
}

func TestB10_MoreThanTheCapacityIsSavedUp(t *testing.T) {
	b := newBucket(1000, 10)
	big := queue(b, 0, 3, 100)
	wantNext(t, b, 90*milli)
	// Whatever it has saved, no more than the capacity is there for others.
	wantTokens(t, b, 50*milli, 10)
	high := queue(b, 50*milli, 4, 11)
	wantNext(t, b, 51*milli)
	b.Advance(51 * milli)
	wantGranted(t, b, high)
	b.Advance(101*milli - 1)
	wantGranted(t, b)
	b.Advance(101 * milli)
	wantGranted(t, b, big)
	wantTokens(t, b, 101*milli, 0)
}

func TestB10_GivingUpReturnsTokens(t *testing.T) {
	b := newBucket(1000, 10)
	b.Take(0, 10)
	big := queue(b, 0, 3, 100)
	next := queue(b, 0, 3, 8)
	b.Advance(30 * milli) // 20 of them are with big by now
	b.Take(30*milli, 1)
	high := queue(b, 30*milli, 4, 10)
	wantGranted(t, b, high)
	b.Remove(32*milli, big)
	wantGranted(t, b, next)
	wantTokens(t, b, 32*milli, 2) // no more than a full bucket came back
	if b.Take(32*milli, 3) != bucket.Short {
		t.Error("more taken than a full bucket")
	}
}

func TestB10_GivingUpWhenGrantedReturnsAll(t *testing.T) {
	b := newBucket(1000, 10)
	b.Take(0, 10)
	e, other := queue(b, 0, 3, 5), queue(b, 0, 3, 4)
	b.Remove(5*milli, e) // granted in the same moment, and not collected yet
	wantGranted(t, b, other)
	wantTokens(t, b, 5*milli, 1)
	b.Push(5*milli, e, 3, 1) // its memory can be used again
	wantGranted(t, b, e)
	b.Remove(5*milli, e)
	wantTokens(t, b, 5*milli, 1)
}

// TestB10_AnyNumberIsCounted: nothing overflows, however many are asked for.
func TestB10_AnyNumberIsCounted(t *testing.T) {
	b := newBucket(bucket.MaxRate, bucket.MaxCapacity)
	queue(b, 0, 6, math.MaxInt64)
	queue(b, 0, 0, math.MaxInt64)
	wantNext(t, b, second)
	for range 100 { // the guard gives it a full bucket, and then as much when that is repaid
		now, ok := b.Next()
		if !ok {
			t.Fatal("nothing is due")
		}
		b.Advance(now)
		wantGranted(t, b)
		if got := b.Tokens(now); got < -bucket.MaxCapacity {
			t.Fatalf("%d tokens", got)
		}
	}
	if got := b.FreeAt(0, math.MaxInt64); got < 1<<55 {
		t.Errorf("math.MaxInt64 tokens are free at %d", got)
	}
}

func TestB11_GuardAdmitsIntoDebt(t *testing.T) {
	b := newBucket(1000, 10)
	b.Take(0, 10)
	low, low2 := queue(b, 0, 1, 500), queue(b, 0, 1, 1)
	at := int64(0)
	// In the higher tier at least two entries wait at all times.
	queue(b, at, 5, 5)
	queue(b, at, 5, 5)
	for at < second-5*milli {
		queue(b, at, 5, 5)
		at += 5 * milli
		b.Advance(at)
		if e := b.Granted(); e == nil || e == low {
			t.Fatalf("after %v: %p granted", time.Duration(at), e)
		}
	}
	b.Advance(second)
	if b.Granted() == nil || b.Granted() != low {
		t.Fatal("after a second the guard has not admitted the lower tier")
	}
	wantTokens(t, b, second, -500)
	// Until the debt is repaid no entry gets a token, and no tier ages.
	wantNext(t, b, second+505*milli)
	for at = second + 500*milli; at < 2*second+500*milli; at += 5 * milli {
		queue(b, at, 5, 5)
		b.Advance(at + 5*milli)
		if e := b.Granted(); e == nil || e == low2 {
			t.Fatalf("after %v: %p granted", time.Duration(at), e)
		}
	}
	wantGranted(t, b, low2)
}

// TestB11_LongRunRateHolds keeps all tiers full with entries far above the
// capacity, so that the guard is always at work.
func TestB11_LongRunRateHolds(t *testing.T) {
	const rate, capacity, n = 1000, 10, 2500
	b := newBucket(rate, capacity)
	var got, most int64
	served := [bucket.Tiers]int{}
	tiers := map[*bucket.Entry]int{}
	for tier := range bucket.Tiers {
		tiers[queue(b, 0, tier, n)] = tier
	}
	at := int64(0)
	for at < 1000*second {
		at, _ = b.Next()
		b.Advance(at)
		for e := b.Granted(); e != nil; e = b.Granted() {
			got += n
			served[tiers[e]]++
			tiers[queue(b, at, tiers[e], n)] = tiers[e]
			delete(tiers, e)
		}
		most = max(most, got-capacity-rate*at/second)
	}
	if most > n {
		t.Errorf("up to %d tokens more than earned: more than one debt at a time", most)
	}
	if short := rate*at/second - got; short > 7*n {
		t.Errorf("%d tokens less than earned", short)
	}
	for tier, count := range served {
		if count < 20 {
			t.Errorf("tier %d served %d times in 1000 s", tier, count)
		}
	}
}

// TestB11_GuardIsNotFooledByGaps: one caller of a higher tier that comes back
// a microsecond after each grant leaves gaps in which the entry of the lower tier
// is the first. That is not progress.
func TestB11_GuardIsNotFooledByGaps(t *testing.T) {
	b := newBucket(100, 1)
	b.Take(0, 1)
	low := queue(b, 0, 0, 2)
	for at := int64(0); at < 2*second; {
		queue(b, at, 6, 1)
		at, _ = b.Next()
		b.Advance(at)
		for e := b.Granted(); e != nil; e = b.Granted() {
			if e == low {
				if at < second || at > second+10*milli {
					t.Errorf("admitted after %v", time.Duration(at))
				}
				return
			}
		}
		at += int64(time.Microsecond)
	}
	t.Error("starved")
}

// TestB11_GivingUpDoesNotResetTheGuard: a tier whose callers give up before
// their second is over must be admitted all the same.
func TestB11_GivingUpDoesNotResetTheGuard(t *testing.T) {
	b := newBucket(1, 1)
	b.Take(0, 1)
	queue(b, 0, 6, 1000)
	first := queue(b, 0, 0, 1)
	second1 := queue(b, 0, 0, 1)
	b.Remove(900*milli, first)
	wantNext(t, b, second)
	b.Advance(second)
	wantGranted(t, b, second1)
}

// TestLateWakeKeepsTokens: what is earned between the time at which the first
// entry was due and a late wake is there for it when it comes back, past the
// capacity, up to 10 ms' worth and for 10 ms.
func TestLateWakeKeepsTokens(t *testing.T) {
	const capacity = 10
	for _, test := range []struct {
		late, back int64 // after the time that was due, and after the wake
		want       int64 // tokens left
	}{
		{0, 0, 0},
		{milli, 0, 1},
		{10 * milli, 0, 10},
		{14 * milli, 0, 14},
		{100 * milli, 0, 20}, // a full bucket, and 10 ms' worth
		{0, 9 * milli, 9},
		{0, 11 * milli, 10},
		{2 * milli, 7 * milli, 9},
		{2 * milli, 9 * milli, 11},
		{3 * milli, 9 * milli, 12},
		{4 * milli, 9 * milli, 13},
		{4 * milli, 99 * milli / 10, 13},
		{4 * milli, 10 * milli, 10}, // the credit has ended
		{100 * milli, 9 * milli, 20},
		{100 * milli, 10 * milli, 10},
	} {
		b := newBucket(1000, capacity)
		b.Take(0, capacity)
		e := queue(b, 0, 3, 10)
		b.Advance(10*milli + test.late)
		wantGranted(t, b, e)
		wantTokens(t, b, 10*milli+test.late+test.back, test.want)
	}
}

// A waiter that gives up as it is granted late returns no tokens to a bucket that is full,
// but does not drop the credit of the late wake either.
func TestLateWakeKeepsTokensOfOneThatGivesUp(t *testing.T) {
	b := newBucket(1000, 5)
	b.Take(0, 5)
	e := queue(b, 0, 3, 1)
	b.Advance(11 * milli)
	wantTokens(t, b, 11*milli, 10)
	b.Remove(11*milli, e)
	wantTokens(t, b, 11*milli, 10)
}

// TestLateWakeLosesNoRate: a caller that always comes back for a whole bucket,
// and is always woken a millisecond late, gets the whole rate.
func TestLateWakeLosesNoRate(t *testing.T) {
	const rate, capacity = 100e6, 64 << 10
	b := newBucket(rate, capacity)
	at, got := int64(0), int64(0)
	for at < second {
		for b.Take(at, capacity) == bucket.Taken {
			got += capacity
			at += 1000
		}
		queue(b, at, 3, capacity)
		due, _ := b.Next()
		at = due + milli
		b.Advance(at)
		if b.Granted() == nil {
			t.Fatal("not granted when due")
		}
		got += capacity
	}
	want := int64(rate * float64(at) / float64(second))
	if got < want*998/1000 || got > want+capacity {
		t.Errorf("%d bytes in %v, want %d", got, time.Duration(at), want)
	}
}

// TestB10_NoWindowAboveRateAndCapacity checks every window between two
// admissions of a run with waits that are given up and no late wake. At more than
// a token a nanosecond, a waiter is granted up to a nanosecond after its tokens
// were earned, and what that part of a nanosecond earned is kept.
func TestB10_NoWindowAboveRateAndCapacity(t *testing.T) {
	rng := seeded.Rand(t)
	for range 20 {
		rate, capacity := float64(int64(1)<<rng.IntN(35)), 1+rng.Int64N(1000)
		w := windows{rate: rate, bucket: newBucket(rate, capacity), asked: map[*bucket.Entry]int64{}}
		scale := max(int64(float64(capacity)/rate*1e9/8), 1)
		for range 800 {
			w.now += rng.Int64N(scale)
			n := rng.Int64N(capacity + 1)
			if rng.IntN(20) == 0 { // all that it holds after a pause
				w.now += 8 * scale
				n = capacity
			}
			w.serve()
			if rng.IntN(3) == 0 {
				if w.bucket.Take(w.now, n) == bucket.Taken {
					w.note(n)
				}
				continue
			}
			// One tier, so that the guard admits no entry into debt.
			e := &bucket.Entry{}
			w.asked[e] = n
			w.bucket.Push(w.now, e, 3, n)
			w.collect()
			if rng.IntN(4) == 0 && w.asked[e] > 0 {
				delete(w.asked, e)
				w.bucket.Remove(w.now, e)
				w.collect()
			}
		}
		w.check(t, capacity)
	}
}

// windows notes how many tokens were admitted when.
type windows struct {
	rate   float64
	bucket *bucket.Bucket
	now    int64
	asked  map[*bucket.Entry]int64
	at, n  []int64
}

// serve does what is due by now, each at its time.
func (w *windows) serve() {
	until := w.now
	for due, ok := w.bucket.Next(); ok && due <= until; due, ok = w.bucket.Next() {
		w.now = due
		w.bucket.Advance(due)
		w.collect()
	}
	w.now = until
}

func (w *windows) collect() {
	for e := w.bucket.Granted(); e != nil; e = w.bucket.Granted() {
		w.note(w.asked[e])
		delete(w.asked, e)
	}
}

func (w *windows) note(n int64) {
	w.at, w.n = append(w.at, w.now), append(w.n, n)
}

func (w *windows) check(t *testing.T, capacity int64) {
	t.Helper()
	holds := capacity + int64(math.Ceil(w.rate/1e9)) - 1
	for i := range w.at {
		sum := int64(0)
		for j := i; j < len(w.at); j++ {
			sum += w.n[j]
			earned := math.Ceil(float64(w.at[j]-w.at[i]) * w.rate / 1e9)
			if sum > holds+int64(earned) {
				t.Fatalf("rate %v, capacity %d: %d tokens within %v",
					w.rate, capacity, sum, time.Duration(w.at[j]-w.at[i]))
			}
		}
	}
}

func TestLargerCapacityIsNotFuller(t *testing.T) {
	b := newBucket(1000, 10)
	b.Freeze()
	b.Set(second, 1000, 100)
	wantTokens(t, b, second, 10)
	wantTokens(t, b, second+50*milli, 60)
	b.Freeze()
	b.Set(second+50*milli, 1000, 20)
	wantTokens(t, b, second+50*milli, 20)
}

func TestOperationsDoNotAllocate(t *testing.T) {
	b := newBucket(1000, 10)
	e := &bucket.Entry{}
	at := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		at += milli
		b.Take(at, 1)
		b.Push(at, e, 3, 10)
		at += 10 * milli
		b.Advance(at)
		if b.Granted() != e {
			t.Error("not granted")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Look finds what Take takes without waiting: not what is beyond the capacity, nothing while an
// entry waits, and nothing while the rate is being changed.
func TestB10_LookFindsWhatTakeTakes(t *testing.T) {
	b := newBucket(1000, 10)
	look := func(what string, now, n int64, want bool) {
		t.Helper()
		if _, got := b.Look(now, n); got != want {
			t.Errorf("%s: Look for %d tokens after %v is %t", what, n, time.Duration(now), got)
		}
	}
	b.Freeze()
	look("frozen, with no token spent", 0, 0, false)
	b.Set(0, 1000, 10)
	look("full", 0, 10, true)
	look("too few", 0, 11, false)
	look("more than full", milli, 1, false)
	spent, _ := b.Look(0, 4)
	if !b.Claim(spent, 4) || b.Claim(spent, 4) {
		t.Error("a count that was seen once was not claimed once")
	}
	wantTokens(t, b, 0, 6)
	b.Freeze()
	look("frozen", 0, 0, false)
	b.Set(0, 1000, 10)
	look("after the change", 0, 6, true)
	e := queue(b, 0, 3, 7)
	look("while an entry waits", 0, 0, false)
	b.Remove(0, e)
	look("after it gave up", 0, 6, true)
}
