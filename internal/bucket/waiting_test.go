package bucket_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stintgo/stint/internal/bucket"
	"github.com/stintgo/stint/internal/seeded"
)

// crowd returns a bucket with random entries that have random tiers and have come at
// random times, all within a tenth of the guard's time.
func crowd(rng *rand.Rand) (b *bucket.Bucket, entries map[*bucket.Entry]int64, now int64) {
	rate := float64(int64(1) << (20 + rng.IntN(10)))
	b = newBucket(rate, 1+rng.Int64N(1000))
	entries = map[*bucket.Entry]int64{}
	for range rng.IntN(12) {
		now += rng.Int64N(int64(1e9 / rate * 50))
		e := new(bucket.Entry)
		b.Push(now, e, rng.IntN(bucket.Tiers), rng.Int64N(2000))
		entries[e] = now
		for g := b.Granted(); g != nil; g = b.Granted() {
			delete(entries, g)
		}
	}
	return b, entries, now
}

// drain advances the time until the queue is empty, and returns the entries in the order
// of their admission, with the times.
func drain(b *bucket.Bucket, now int64) (order []*bucket.Entry, times []int64) {
	for {
		for g := b.Granted(); g != nil; g = b.Granted() {
			order, times = append(order, g), append(times, now)
		}
		due, ok := b.Next()
		if !ok {
			return order, times
		}
		now = max(now, due)
		b.Advance(now)
	}
}

// TestB14_WaitingHasTheOrderAndTheTimes checks, with random entries, that the list has all
// waiters in the order of their admission, since when each waits, and when each is
// admitted, to the nanosecond.
func TestB14_WaitingHasTheOrderAndTheTimes(t *testing.T) {
	rng := seeded.Rand(t)
	total := 0
	for range 3000 {
		b, entries, now := crowd(rng)
		listed := b.Waiting(now)
		holds := b.Tokens(now)
		order, times := drain(b, now)
		if len(order) != len(entries) || len(order) != len(listed) {
			t.Fatalf("%d entries are listed and %d admitted, of %d", len(listed), len(order), len(entries))
		}
		for i, w := range listed {
			if since := entries[order[i]]; w.Since != since || w.FreeAt != times[i] {
				t.Fatalf("entry %d: since %d, tokens at %d, want %d and %d", i, w.Since, w.FreeAt, since, times[i])
			}
			if w.Need > w.Asked || w.AloneAt > w.FreeAt || w.Need > holds && w.AloneAt <= now {
				t.Fatalf("entry %d: %+v, the bucket holds %d at %d", i, w, holds, now)
			}
		}
		total += len(listed)
	}
	if total < 1000 {
		t.Errorf("only %d entries have waited", total)
	}
}

// TestB10_VacantAtIsTheFirstNanosecond checks, in random buckets, that Take refuses an
// amount up to the nanosecond before VacantAt, and takes it then.
func TestB10_VacantAtIsTheFirstNanosecond(t *testing.T) {
	rng := seeded.Rand(t)
	waited := 0
	for range 3000 {
		b, _, now := crowd(rng)
		_, capacity := b.Rate()
		if got := b.VacantAt(now, capacity+1); got != bucket.Never {
			t.Fatalf("more than the capacity at %d", got)
		}
		n := rng.Int64N(capacity + 1)
		vacant := b.VacantAt(now, n)
		if vacant > now {
			waited++
			for due, ok := b.Next(); ok && due < vacant; due, ok = b.Next() {
				b.Advance(due)
			}
			b.Advance(vacant - 1)
			if b.Take(vacant-1, n) == bucket.Taken {
				t.Fatalf("%d tokens before VacantAt", n)
			}
		}
		b.Advance(vacant)
		if b.Take(vacant, n) != bucket.Taken {
			t.Fatalf("the bucket does not hold %d tokens at VacantAt", n)
		}
	}
	if waited < 1000 {
		t.Errorf("only %d had to wait", waited)
	}
}
