package slotstest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint"
)

// Factory makes slots for a test: limit slots, shared by n participants. It must
// free them with t.Cleanup.
type Factory func(t *testing.T, limit, n int) []stint.Slots

// patience is how long a test waits for a notification. It is for very busy machines;
// a test that passes never waits for it.
const patience = 10 * time.Second

// Run checks that the slots that factory makes keep the contract of [stint.Slots].
func Run(t *testing.T, factory Factory) {
	t.Helper()
	limits(t, factory)
	notices(t, factory)
	usage(t, factory)
	t.Run("ManyAtOnce", func(t *testing.T) {
		const limit, participants = 3, 4
		c := &counter{limit: limit}
		var wg sync.WaitGroup
		for _, slots := range factory(t, limit, participants) {
			s := stint.New(limit, stint.Config{Slots: slots})
			for range workers {
				wg.Go(func() { c.work(t, s) })
			}
		}
		wg.Wait()
		if want := participants * workers * rounds; c.done != want {
			t.Errorf("%d rounds were done, want %d", c.done, want)
		}
	})
}

// party is a participant that keeps a scheduler's side of the contract.
type party struct {
	stint.Slots
	notified chan struct{} // holds one notification
	lock     sync.Mutex    // stands for a scheduler's: held while methods are called
	over     atomic.Bool   // the test has ended, and may close what has the slots
}

func bind(t *testing.T, all []stint.Slots) []*party {
	t.Helper()
	parties := make([]*party, len(all))
	for i, slots := range all {
		p := &party{Slots: slots, notified: make(chan struct{}, 1)}
		p.Bind(p.notice, func(grant stint.Grant, cause error) {
			if !p.over.Load() {
				t.Errorf("grant %d was lost: %v", grant, cause)
			}
		})
		t.Cleanup(func() { p.over.Store(true) }) // before the cleanup of the factory
		parties[i] = p
	}
	return parties
}

// notice takes the scheduler's lock, as a scheduler does: an implementation
// that calls it from within a method deadlocks.
func (p *party) notice() {
	p.lock.Lock()
	defer p.lock.Unlock()
	select {
	case p.notified <- struct{}{}:
	default:
	}
}

func (p *party) try(tier stint.Priority) (stint.Grant, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.TryAcquire(tier)
}

func (p *party) give(grant stint.Grant) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.Release(grant)
}

func (p *party) want(tier stint.Priority, waiting int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.Want(tier, waiting)
}

func (p *party) usage() stint.Usage {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.Usage()
}

// take gets a slot that must be free. It waits, because an implementation may have to
// request it from another machine first.
func (p *party) take(t *testing.T) stint.Grant {
	t.Helper()
	p.want(stint.Normal, 1)
	defer p.want(stint.Normal, 0)
	deadline := time.After(patience)
	for {
		grant, err := p.try(stint.Normal)
		if err == nil {
			if grant == 0 {
				t.Fatal("grant 0 is not valid")
			}
			return grant
		}
		select {
		case <-p.notified:
		case <-deadline:
			t.Fatalf("a free slot was refused: %v", err)
		}
	}
}

// refused checks that no slot is free.
func (p *party) refused(t *testing.T) {
	t.Helper()
	if grant, err := p.try(stint.Highest); err == nil {
		t.Fatalf("got slot %d above the limit", grant)
	}
}

// awaitSlot begins to wait while no slot is free, and gets one after the notification
// that follows release.
func (p *party) awaitSlot(t *testing.T, release func()) {
	t.Helper()
	p.want(stint.High, 1)
	p.refused(t)
	for len(p.notified) > 0 {
		<-p.notified // for a slot that is not free any more
	}
	release()
	p.await(t, stint.High)
}

// await gets a slot for a waiter, once the waiter is notified.
func (p *party) await(t *testing.T, tier stint.Priority) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case <-p.notified:
		case <-deadline:
			t.Fatal("the waiter was not notified of a free slot")
		}
		if _, err := p.try(tier); err == nil {
			p.want(tier, 0)
			return
		}
	}
}

// limits checks that no more slots are granted than there are.
func limits(t *testing.T, factory Factory) {
	t.Helper()
	t.Run("LimitIsHard", func(t *testing.T) {
		parties := bind(t, factory(t, 3, 2))
		for i := range 3 {
			parties[i%2].take(t)
		}
		for _, p := range parties {
			p.refused(t)
		}
	})
	t.Run("GrantsAreDistinct", func(t *testing.T) {
		p := bind(t, factory(t, 8, 1))[0]
		seen := map[stint.Grant]bool{}
		for range 8 {
			grant := p.take(t)
			if seen[grant] {
				t.Fatalf("grant %d was returned twice", grant)
			}
			seen[grant] = true
		}
	})
	t.Run("ReleaseFreesOneSlot", func(t *testing.T) {
		parties := bind(t, factory(t, 2, 2))
		first, second := parties[0].take(t), parties[1].take(t)
		parties[0].give(first)
		third := parties[1].take(t)
		parties[0].refused(t)
		parties[1].give(second)
		parties[1].give(third)
		parties[0].take(t)
		parties[0].take(t)
		parties[1].refused(t)
	})
}

// notices checks that participants that wait are notified, and no others.
func notices(t *testing.T, factory Factory) {
	t.Helper()
	t.Run("WaiterIsNotified", func(t *testing.T) {
		parties := bind(t, factory(t, 1, 2))
		grant := parties[0].take(t)
		parties[1].awaitSlot(t, func() { parties[0].give(grant) })
	})
	t.Run("SlotBeforeTheWait", func(t *testing.T) {
		all := bind(t, factory(t, 1, 2))
		grant := all[0].take(t)
		all[1].refused(t)
		all[0].give(grant)
		all[1].want(stint.Normal, 1) // the slot that it was refused has become free since
		all[1].await(t, stint.Normal)
	})
	t.Run("OwnWaiterIsNotified", func(t *testing.T) {
		p := bind(t, factory(t, 1, 1))[0]
		grant := p.take(t)
		p.awaitSlot(t, func() { p.give(grant) })
	})
	// A participant that has stopped waiting is not notified.
	t.Run("OnlyWaitersAreNotified", func(t *testing.T) {
		parties := bind(t, factory(t, 1, 3))
		idle := parties[2]
		grant := parties[0].take(t)
		idle.want(stint.Highest, 2)
		idle.want(stint.Highest, 0)
		for len(idle.notified) > 0 {
			<-idle.notified
		}
		parties[1].awaitSlot(t, func() { parties[0].give(grant) })
		if len(idle.notified) > 0 {
			t.Error("a participant that does not wait was notified")
		}
	})
}

// usage checks the result of Usage.
func usage(t *testing.T, factory Factory) {
	t.Helper()
	t.Run("UsageAddsUp", func(t *testing.T) {
		parties := bind(t, factory(t, 4, 2))
		parties[0].take(t)
		parties[1].take(t)
		parties[1].take(t)
		parties[0].want(stint.Low, 5)
		var u stint.Usage
		again, deadline := time.NewTicker(time.Millisecond), time.After(patience)
		defer again.Stop()
		for u.Max != 4 || u.Running != 3 || u.Waiting != 5 || u.Err != "" {
			select {
			case <-again.C: // that of another machine may be some milliseconds old
				u = parties[1].usage()
			case <-deadline:
				t.Fatalf("usage is %+v, want 3 of 4 running and 5 waiting", u)
			}
		}
		slots, waiting := 0, 0
		for _, h := range u.Holders {
			slots += h.Slots
			waiting += h.Waiting
			if h.Name == "" {
				t.Error("a holder has no name")
			}
		}
		if slots != u.Running || waiting != u.Waiting {
			t.Errorf("the holders' slots and waiters add up to %d and %d in %+v", slots, waiting, u)
		}
	})
}

// The number of goroutines of each participant, and how many times each of them gets a
// slot.
const workers, rounds = 6, 50

// counter counts the current holders of a slot.
type counter struct {
	mu           sync.Mutex
	limit        int
	inside, done int
}

// work takes slots and checks that no more than limit are held at once.
func (c *counter) work(t *testing.T, s stint.Scheduler) {
	t.Helper()
	for range rounds {
		p, err := s.Acquire(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		c.add(1)
		if n := c.add(0); n > c.limit {
			t.Errorf("%d inside, the limit is %d", n, c.limit)
		}
		c.add(-1)
		p.Release()
	}
}

// add changes the number of holders and returns it.
func (c *counter) add(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside += n
	if n < 0 {
		c.done++
	}
	return c.inside
}
