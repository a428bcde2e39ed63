package bucket_test

import (
	"testing"
	"time"

	"github.com/stintgo/stint/internal/bucket"
	"github.com/stintgo/stint/internal/seeded"
)

// TestB10_Earliest checks, in random buckets with random queues, that no entry is admitted
// before the time that Earliest returned when it came, and exactly then if no other tier
// waits; also after waiters have given up.
func TestB10_Earliest(t *testing.T) {
	rng := seeded.Rand(t)
	exact := 0
	for range 3000 {
		rate := float64(int64(1) << rng.IntN(34))
		b := newBucket(rate, 1+rng.Int64N(1000))
		now := int64(0)
		var waiting []*bucket.Entry
		for range rng.IntN(12) {
			now += rng.Int64N(int64(1e9 / rate * 100))
			e := new(bucket.Entry)
			b.Push(now, e, rng.IntN(bucket.Tiers), rng.Int64N(2000))
			waiting = append(waiting, e)
			if rng.IntN(4) == 0 {
				b.Remove(now, waiting[rng.IntN(len(waiting))])
			}
			for b.Granted() != nil {
			}
		}
		tier, n := rng.IntN(bucket.Tiers), rng.Int64N(2000)
		earliest, began := b.Earliest(now, tier, n), now
		other := false // tiers wait: a higher one goes first, a lower one may be admitted by the guard
		for i := range bucket.Tiers {
			other = other || i != tier && b.Queued(i) > 0
		}
		now = admittedAt(t, b, now, tier, n)
		switch {
		case now < earliest:
			t.Fatalf("rate %g: admitted after %d ns, Earliest is %d ns", rate, now-began, earliest-began)
		case !other && now != earliest:
			t.Fatalf("rate %g: admitted after %d ns, want exactly %d ns", rate, now-began, earliest-began)
		case !other && now > began:
			exact++
		}
	}
	if exact < 100 {
		t.Errorf("only %d entries have waited in the only tier", exact)
	}
}

// admittedAt queues an entry for n tokens and returns when it is admitted.
func admittedAt(t *testing.T, b *bucket.Bucket, now int64, tier int, n int64) int64 {
	t.Helper()
	e := new(bucket.Entry)
	b.Push(now, e, tier, n)
	for {
		for g := b.Granted(); g != nil; g = b.Granted() {
			if g == e {
				return now
			}
		}
		due, waits := b.Next()
		if !waits {
			t.Fatal("the entry has vanished")
		}
		now = max(now, due)
		b.Advance(now)
	}
}

// Behind a higher tier that waits for long, Earliest is when the guard admits the entry: once
// its tier has been passed over for [bucket.GuardAfter], from its arrival or, in debt, from when that is
// repaid.
func TestB10_EarliestByTheGuard(t *testing.T) {
	const low, n = 1, 5
	for _, c := range []struct {
		name      string
		before    func(b *bucket.Bucket)
		now, want int64
	}{
		{"first of its tier", func(*bucket.Bucket) {}, 0, second},
		{"first since a waiter of its tier gave up", func(b *bucket.Bucket) {
			var left bucket.Entry
			b.Push(0, &left, low, n)
			b.Remove(9*second/10, &left)
		}, 9 * second / 10, 19 * second / 10},
		{"in debt", func(b *bucket.Bucket) {
			queue(b, 0, 0, 10)
			b.Advance(second) // the guard admits these into a debt of 9
		}, 2 * second, 11 * second},
	} {
		b := newBucket(1, 10)
		b.Take(0, 10)
		queue(b, 0, 3, 100_000)
		c.before(b)
		earliest := b.Earliest(c.now, low, n)
		if earliest != c.want {
			t.Errorf("%s: the earliest time is %v, want %v", c.name, time.Duration(earliest), time.Duration(c.want))
		}
		if at := admittedAt(t, b, c.now, low, n); at != earliest {
			t.Errorf("%s: admitted at %v, Earliest is %v", c.name, time.Duration(at), time.Duration(earliest))
		}
	}
}

// Earliest is by the state at its time: a waiter whose tokens have been earned since the last call
// goes first, and later tokens than the bucket holds are lost.
func TestB10_EarliestOfABucketThatWasNotAdvanced(t *testing.T) {
	b := newBucket(1, 10)
	queue(b, 0, 3, 10)
	queue(b, 0, 3, 10)
	const now, n = 1000 * second, 30
	if got := b.Earliest(now, 3, n); got < now+10*second {
		t.Errorf("the earliest time for %d tokens is %v after now", n, time.Duration(got-now))
	}
}
