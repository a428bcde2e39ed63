package pool //nolint:testpackage // it makes participants without processes

import (
	"reflect"
	"testing"
)

// Usage lists the participants that hold slots or wait, and no others. The slots of one that has
// died are listed as those of a dead one until they are recovered.
func TestB6_UsageListsWhatHoldsAndWaits(t *testing.T) {
	shape := Shape{Participants: 4, Limits: []int{2}}
	p := New(make([]uint64, shape.Words()), shape, asleep{})
	var all []*Member
	for i, name := range []string{"holds", "waits", "has nothing", "died"} {
		p.state(i).store(stateOf(1))
		m := p.member(i, 1)
		m.Sign(100+i, name)
		all = append(all, m)
	}
	for _, i := range []int{0, 3} {
		if _, ok := all[i].Handle(0).Take(3); !ok {
			t.Fatal("a free slot was refused")
		}
	}
	all[1].Handle(0).Want(Want{Tier: 3, Count: 5})
	p.state(3).store(gone(stateOf(1)))
	holds := Holder{Party: Party{100, "holds", lifeLock(0)}, Slots: 1}
	waits := Holder{Party: Party{101, "waits", lifeLock(1)}, Waiting: 5}
	died := Holder{Party: Party{103, "died", lifeLock(3)}, Slots: 1, Dead: true}
	want := Usage{Slots: 1, Waiting: 5, Holders: []Holder{holds, waits, died}}
	if got := p.Usage(0); !reflect.DeepEqual(got, want) {
		t.Errorf("the usage is %+v, want %+v", got, want)
	}
	want.Holders = want.Holders[:2]
	if got := all[0].Handle(0).Usage(); !reflect.DeepEqual(got, want) {
		t.Errorf("the usage is %+v when the dead one's slot is recovered, want %+v", got, want)
	}
}

// The state of a bucket lists the living participants that wait for tokens.
func TestB13_StateListsWhatWaits(t *testing.T) {
	shape := Shape{Participants: 5, Buckets: 1}
	p := New(make([]uint64, shape.Words()), shape, asleep{})
	var all []*BucketHandle
	for i, name := range []string{"waits", "has nothing", "died", "waits too"} {
		p.state(i).store(stateOf(1))
		m := p.member(i, 1)
		m.Sign(100+i, name)
		all = append(all, m.BucketHandle(0))
	}
	all[0].Enqueue(Want{Tier: 3, Count: 5}, 1)
	all[2].Enqueue(Want{Tier: 3, Count: 6}, 1)
	all[3].Enqueue(Want{Tier: 4, Count: 7}, 1)
	all[0].Spend(0, 11)
	p.state(2).store(gone(stateOf(1)))
	want := BucketState{Spent: 11, Waiters: []Waiter{
		{Party: Party{100, "waits", lifeLock(0)}, Tier: 3, Waiting: 5},
		{Party: Party{103, "waits too", lifeLock(3)}, Tier: 4, Waiting: 7, at: 3},
	}}
	if got := p.BucketState(0); !reflect.DeepEqual(got, want) {
		t.Errorf("the state is %+v, want %+v", got, want)
	}
	want.Waiters[1].Self = true
	if got := all[3].State(); !reflect.DeepEqual(got, want) {
		t.Errorf("the state is %+v for the last one, want %+v", got, want)
	}
}
