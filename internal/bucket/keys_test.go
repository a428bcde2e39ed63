package bucket_test

import (
	"errors"
	"testing"

	"github.com/stintgo/stint/internal/bucket"
)

func newKeys(shared *bucket.Bucket) *bucket.Keys {
	k := &bucket.Keys{}
	k.Init(shared)
	return k
}

// An error of the source of the shared bucket is the error of the key's entry.
func TestB13_KeyGetsTheErrorOfTheSource(t *testing.T) {
	s := &source{denies: true, rival: -1}
	b := shared(s, 1000, 10)
	k := newKeys(b)
	e := &bucket.Entry{}
	k.Push(0, "a", e, 3, 5)
	if k.Granted(0) != nil {
		t.Fatal("granted without tokens of the source")
	}
	s.denies, s.err = false, errors.New("the source is gone")
	b.Advance(milli)
	if k.Granted(milli) != e || !errors.Is(e.Err, s.err) {
		t.Errorf("the error of the entry is %v, want %v", e.Err, s.err)
	}
}

// An entry of a key that gives up as it is granted returns its tokens to the shared bucket
// and to the source.
func TestB13_KeyReturnsTokensToTheSource(t *testing.T) {
	s := &source{rival: -1}
	b := shared(s, 1000, 10)
	k := newKeys(b)
	e := &bucket.Entry{}
	k.Push(0, "a", e, 3, 5)
	wantTokens(t, b, 0, 5)
	k.Remove(0, "a", e)
	if s.returned != 5 {
		t.Errorf("%d tokens were returned to the source, want 5", s.returned)
	}
	wantTokens(t, b, 0, 10)
}

// Tokens that overflow a key's bucket to the first entry of a key are progress: the time
// until the guard admits it past a higher tier begins anew.
func TestB11_OverflowOfAKeyResetsTheGuard(t *testing.T) {
	k := newKeys(newBucket(bucket.MaxRate, bucket.MaxCapacity))
	k.Set(0, 10, 10)
	k.Take(0, "a", 10)
	low, high := &bucket.Entry{}, &bucket.Entry{}
	k.Push(0, "a", low, 1, 30)
	k.Push(0, "a", high, 5, 5)
	k.Advance(second / 2)
	if k.Granted(second/2) != high {
		t.Fatal("the higher tier was not granted")
	}
	k.Push(2*second, "a", &bucket.Entry{}, 5, 100)
	if due, ok := k.Next(); !ok || due != 3*second {
		t.Errorf("the guard is due at %d, %t, want %d", due, ok, 3*second)
	}
}

// A change of the rate per key keeps no tokens that overflow when it is made late, after the
// last entry of the key was due.
func TestB10_LateTokensOfAKeyDoNotSurviveSetPerKey(t *testing.T) {
	k := newKeys(newBucket(bucket.MaxRate, bucket.MaxCapacity))
	k.Set(0, 1000, 10)
	k.Take(0, "a", 10)
	e := &bucket.Entry{}
	k.Push(0, "a", e, 3, 1)
	k.Set(second, 1000, 100)
	if k.Granted(second) != e {
		t.Error("the entry was not granted")
	}
	if got := k.Tokens(second, "a"); got != 10 {
		t.Errorf("the key holds %d tokens, want 10", got)
	}
}

// A sweep is due when the first key is full that tokens were taken of, or for which the last
// entry has been granted.
func TestB10_SweepIsDueWhenAKeyIsFull(t *testing.T) {
	k := newKeys(newBucket(bucket.MaxRate, bucket.MaxCapacity))
	k.Set(0, 1, 10)
	k.Take(0, "a", 10)
	if got := k.SweepAt(); got != 10*second {
		t.Errorf("a sweep is due at %d, want %d", got, 10*second)
	}
	if k.Sweep(10*second) || k.Len() != 0 || k.SweepAt() != bucket.Never {
		t.Errorf("after the sweep %d keys are known, and the next is due at %d", k.Len(), k.SweepAt())
	}
	k.Push(20*second, "b", &bucket.Entry{}, 3, 5)
	if got := k.SweepAt(); k.Granted(20*second) == nil || got != 25*second {
		t.Errorf("a sweep is due at %d, want %d", got, 25*second)
	}
}
