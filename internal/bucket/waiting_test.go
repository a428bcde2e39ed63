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

// drain lets time go by until nobody waits, and returns when each was admitted, in
// that order.
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

// TestB14_WaitingTellsTheOrderAndTheTimes: of random entries the list has all that wait
// and since when, in the order in which they are admitted then, each at the time that
// the list says, to the nanosecond.
func TestB14_WaitingTellsTheOrderAndTheTimes(t *testing.T) {
	rng := seeded.Rand(t)
	listed := 0
	for range 3000 {
		b, entries, now := crowd(rng)
		told := b.Waiting(now)
		holds := b.Tokens(now)
		order, times := drain(b, now)
		if len(order) != len(entries) || len(order) != len(told) {
			t.Fatalf("%d entries are listed and %d admitted, of %d", len(told), len(order), len(entries))
		}
		for i, w := range told {
			if since := entries[order[i]]; w.Since != since || w.FreeAt != times[i] {
				t.Fatalf("entry %d: since %d, tokens at %d, want %d and %d", i, w.Since, w.FreeAt, since, times[i])
			}
			if w.Need > w.Asked || w.AloneAt > w.FreeAt || w.Need > holds && w.AloneAt <= now {
				t.Fatalf("entry %d: %+v, the bucket holds %d at %d", i, w, holds, now)
			}
		}
		listed += len(told)
	}
	if listed < 1000 {
		t.Errorf("only %d entries have waited", listed)
	}
}

// TestB10_VacantAtIsTheFirstNanosecond: in random buckets Take refuses an amount up to
// the nanosecond that was told, and takes it then.
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
		told := b.VacantAt(now, n)
		if told > now {
			waited++
			for due, ok := b.Next(); ok && due < told; due, ok = b.Next() {
				b.Advance(due)
			}
			b.Advance(told - 1)
			if b.Take(told-1, n) == bucket.Taken {
				t.Fatalf("%d tokens before the time that was told", n)
			}
		}
		b.Advance(told)
		if b.Take(told, n) != bucket.Taken {
			t.Fatalf("%d tokens are not there at the time that was told", n)
		}
	}
	if waited < 1000 {
		t.Errorf("only %d had to wait", waited)
	}
}
