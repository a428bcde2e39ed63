package pool //nolint:testpackage // it marks participants as dead by hand

import "testing"

// bucketOf returns living participants of a pool with one bucket.
func bucketOf(participants int) (p *Pool, all []*Member) {
	shape := Shape{Participants: participants, Buckets: 1}
	p = New(make([]uint64, shape.Words()), shape, asleep{})
	for i := range participants {
		p.state(i).store(stateOf(1))
		all = append(all, p.member(i, 1))
	}
	return p, all
}

// A dead participant at the front of the queue is removed; the queue behind it keeps its
// order.
func TestB13_DeadFrontLeavesTheOrder(t *testing.T) {
	p, all := bucketOf(3)
	for i, m := range all {
		m.BucketHandle(0).Enqueue(Want{Tier: 5 - i, Ticket: 7, Count: 1}, 1)
	}
	p.state(0).store(gone(stateOf(1)))
	if all[2].BucketHandle(0).MayTake(3) {
		t.Error("a waiter may take tokens before a higher tier")
	}
	if tier := all[2].BucketHandle(0).Elsewhere(); tier != 4 {
		t.Errorf("the highest tier elsewhere is %d, want 4", tier)
	}
	if !all[1].BucketHandle(0).MayTake(4) {
		t.Error("the first living waiter may not take tokens")
	}
}

// A participant takes tokens for an entry only in the tier in which it waits: its place in
// a higher tier does not let the entry pass waiters of others.
func TestB13_PlaceIsOfOneTier(t *testing.T) {
	_, all := bucketOf(2)
	all[0].BucketHandle(0).Enqueue(Want{Tier: 5, Ticket: 7, Count: 2}, 1)
	all[1].BucketHandle(0).Enqueue(Want{Tier: 4, Ticket: 7, Count: 1}, 1)
	if !all[0].BucketHandle(0).MayTake(5) {
		t.Error("the highest tier may not take tokens")
	}
	if all[0].BucketHandle(0).MayTake(3) {
		t.Error("an entry passes a higher tier of another participant")
	}
}

// Enqueue reports whether the participant is first. If it moves back or leaves, it rings the first
// one, also if that was first before: the participant may have been first in between. One that
// arrives or moves up rings none: a ring wakes a process.
func TestB13_EnqueueRingsTheFirst(t *testing.T) {
	_, all := bucketOf(3)
	waits := func(tier int, ticket uint64, count int) Want { return Want{Tier: tier, Ticket: ticket, Count: count} }
	var rung [3]uint64
	for _, step := range []struct {
		name  string
		by    int
		want  Want
		first bool
		rings int // the participant that is rung, or -1
	}{
		{"the first arrives", 0, waits(3, 5, 1), true, -1},
		{"another arrives behind it", 1, waits(3, 6, 1), false, -1},
		{"one arrives before both", 2, waits(4, 7, 1), true, -1},
		{"the first has more waiters", 2, waits(4, 7, 2), true, -1},
		{"the first moves up", 2, waits(5, 7, 2), true, -1},
		{"the first moves back, and stays first", 2, waits(4, 8, 1), true, -1},
		{"the first moves to the end", 2, waits(3, 9, 1), false, 0},
		{"the first leaves", 0, Want{}, false, 1},
		{"the last moves up, and stays last", 2, waits(3, 8, 1), false, -1},
		{"one arrives again at the end", 0, waits(2, 9, 1), false, -1},
		{"the last moves back", 0, waits(1, 9, 1), false, 1},
		{"the last leaves", 0, Want{}, false, 1},
	} {
		if first := all[step.by].BucketHandle(0).Enqueue(step.want, 1); first != step.first {
			t.Errorf("%s: it is first: %t, want %t", step.name, first, step.first)
		}
		if step.rings >= 0 {
			rung[step.rings]++
		}
		for i, m := range all {
			if m.Bell() != rung[i] {
				t.Fatalf("%s: participant %d was rung %d times, want %d", step.name, i, m.Bell(), rung[i])
			}
		}
	}
}

// Evict leaves a participant at the front of the queue that asks for tokens, and one for
// which the bucket holds too few. It removes one that does not take what is there.
func TestB13_EvictOnlyWhatLooksStopped(t *testing.T) {
	for name, c := range map[string]struct {
		need, holds int64
		asks        bool
		stays       bool
	}{
		"asks":           {need: 1, holds: 5, asks: true, stays: true},
		"needs more":     {need: 10, holds: 5, stays: true},
		"does not take":  {need: 5, holds: 5},
		"asks in vain":   {need: 10, holds: 5, asks: true, stays: true},
		"has no tokens":  {need: 1, holds: 0, stays: true},
		"tokens are due": {need: 1, holds: 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, all := bucketOf(2)
			all[0].BucketHandle(0).Enqueue(Want{Tier: 4, Ticket: 7, Count: 1}, c.need)
			all[1].BucketHandle(0).Enqueue(Want{Tier: 3, Ticket: 7, Count: 1}, 1)
			for range periodsMax + 2 {
				if c.asks {
					all[0].BucketHandle(0).MayTake(4)
				}
				all[0].BucketHandle(0).Heartbeat()
				all[1].BucketHandle(0).Evict(c.holds)
			}
			if stays := !all[1].BucketHandle(0).MayTake(3); stays != c.stays {
				t.Errorf("it is in the queue: %t, want %t", stays, c.stays)
			}
		})
	}
}

// Evict removes the first participant once it has not taken its tokens for more than periodsMax
// calls, or has not called Heartbeat for more than stillMax, and not before.
func TestB13_EvictCountsPeriods(t *testing.T) {
	for name, c := range map[string]struct {
		holds      int64
		heartbeats bool
		after      int // calls of Evict
	}{
		"does not take":             {holds: 3, heartbeats: true, after: periodsMax + 1},
		"neither takes nor runs":    {holds: 3, after: periodsMax + 1},
		"needs more, does not run":  {holds: 2, after: stillMax + 1},
		"needs more, runs at times": {holds: 2, heartbeats: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, all := bucketOf(2)
			all[0].BucketHandle(0).Enqueue(Want{Tier: 4, Ticket: 7, Count: 1}, 3)
			all[1].BucketHandle(0).Enqueue(Want{Tier: 3, Ticket: 7, Count: 1}, 1)
			after := 0
			for n := 1; n <= 2*stillMax && after == 0; n++ {
				if c.heartbeats && n%stillMax == 0 {
					all[0].BucketHandle(0).Heartbeat()
				}
				all[1].BucketHandle(0).Evict(c.holds)
				if all[1].BucketHandle(0).Elsewhere() < 0 {
					after = n
				}
			}
			if after != c.after {
				t.Errorf("it was removed by call %d of Evict, want %d (0: never)", after, c.after)
			}
		})
	}
}

// An entry of a higher tier than that of the waiters may take tokens, and one of their tier or a
// lower one may not.
func TestB13_HigherTierThanTheWaiters(t *testing.T) {
	_, all := bucketOf(2)
	all[1].BucketHandle(0).Enqueue(Want{Tier: 3, Ticket: 1, Count: 1}, 1)
	for tier := range Tiers {
		if may := all[0].BucketHandle(0).MayTake(tier); may != (tier > 3) {
			t.Errorf("an entry of tier %d may take tokens while tier 3 waits: %t", tier, may)
		}
	}
}
