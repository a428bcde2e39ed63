package buckettest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint"
)

// Factory makes a full bucket for a test, shared by n participants. It must free them
// with t.Cleanup.
type Factory func(t *testing.T, rate float64, capacity int64, n int) []stint.Bucket

const (
	// slow is a rate at which no token is added while a test runs.
	slow = 1e-6
	// patience is how long a test waits for a notification. It is for very busy machines;
	// a test that passes never waits for it.
	patience = 10 * time.Second
)

// Run checks that the buckets that factory makes keep the contract of [stint.Bucket].
func Run(t *testing.T, factory Factory) {
	t.Helper()
	t.Run("TakesUntilEmpty", func(t *testing.T) {
		a, b := two(t, factory)
		a.want(t, stint.Normal, 4, 4)
		b.want(t, stint.Normal, 6, 6)
		a.want(t, stint.Normal, 1, 0)
		if _, again, err := a.Take(stint.Normal, 1, false); again < time.Second || again == stint.Never || err != nil {
			t.Errorf("ask again after %v, %v", again, err)
		}
	})
	t.Run("PartOfMoreThanItHolds", func(t *testing.T) {
		a, b := two(t, factory)
		a.want(t, stint.Normal, 15, 10)
		a.want(t, stint.Normal, 5, 0)
		b.want(t, stint.Normal, 15, 0)
	})
	t.Run("Debt", func(t *testing.T) {
		a, b := two(t, factory)
		a.wait(stint.Highest, 11, 1)
		if taken, _, err := b.Take(stint.Low, 25, true); taken != 25 || err != nil {
			t.Errorf("%d tokens on credit, %v", taken, err)
		}
		if taken, again, err := a.Take(stint.Low, 1, true); taken != 0 || again < time.Second || err != nil {
			t.Errorf("%d tokens on credit of a bucket in debt, again after %v, %v", taken, again, err)
		}
		if _, _, debt := a.Rivals(); debt < time.Second {
			t.Errorf("a debt of %v", debt)
		}
		if got := a.Usage().Tokens; got != -15 {
			t.Errorf("%d tokens", got)
		}
	})
	order(t, factory)
	returns(t, factory)
	usage(t, factory)
	t.Run("ManyAtOnce", func(t *testing.T) { many(t, factory) })
}

func order(t *testing.T, factory Factory) {
	t.Helper()
	t.Run("HigherTiersFirst", func(t *testing.T) {
		a, b := two(t, factory)
		a.wait(stint.Normal, 11, 1)
		b.want(t, stint.Low, 1, 0)
		b.want(t, stint.Normal, 1, 0)
		b.want(t, stint.High, 1, 1)
		a.want(t, stint.Normal, 1, 1)
		if tier, waiting, _ := b.Rivals(); tier != stint.Normal || !waiting {
			t.Errorf("rivals: %v, %t", tier, waiting)
		}
		if _, waiting, _ := a.Rivals(); waiting {
			t.Error("Rivals reports the participant itself")
		}
	})
	t.Run("EarlierFirst", func(t *testing.T) {
		a, b := two(t, factory)
		a.wait(stint.Normal, 1, 1)
		time.Sleep(2 * time.Millisecond) // tickets have a resolution of about a microsecond
		b.wait(stint.Normal, 1, 1)
		b.want(t, stint.Normal, 1, 0)
		a.want(t, stint.Normal, 1, 1)
		a.wait(stint.Normal, 0, 0)
		b.notice(t)
		b.want(t, stint.Normal, 1, 1)
	})
	t.Run("ByTurns", func(t *testing.T) {
		a, b := two(t, factory)
		a.wait(stint.Normal, 1, 5)
		time.Sleep(2 * time.Millisecond)
		b.wait(stint.Normal, 1, 5)
		a.want(t, stint.Normal, 10, 10)
		a.want(t, stint.Normal, 1, 0) // its turn ends
		a.Return(10)
		b.notice(t)
		a.want(t, stint.Normal, 1, 0)
		b.want(t, stint.Normal, 1, 1)
	})
}

func returns(t *testing.T, factory Factory) {
	t.Helper()
	t.Run("Return", func(t *testing.T) {
		a, b := two(t, factory)
		a.want(t, stint.Normal, 10, 10)
		b.wait(stint.Normal, 5, 1)
		b.want(t, stint.Normal, 5, 0)
		a.Return(6)
		b.notice(t)
		b.want(t, stint.Normal, 5, 5)
		b.wait(stint.Normal, 0, 0)
		a.Return(100)
		a.want(t, stint.Normal, 100, 10)
	})
	t.Run("ReturnBeforeTheOtherWaits", func(t *testing.T) {
		a, b := two(t, factory)
		a.want(t, stint.Normal, 10, 10)
		b.want(t, stint.Normal, 1, 0)
		a.Return(10)
		b.wait(stint.Normal, 1, 1)
		b.notice(t)
		b.want(t, stint.Normal, 1, 1)
	})
}

func usage(t *testing.T, factory Factory) {
	t.Helper()
	t.Run("Usage", func(t *testing.T) {
		a, b := two(t, factory)
		a.want(t, stint.Normal, 3, 3)
		a.wait(stint.High, 9, 4)
		b.wait(stint.Low, 9, 1)
		u := b.Usage()
		if u.Rate != slow || u.Capacity != 10 || u.Tokens != 7 || u.Waiting != 5 || u.Err != "" {
			t.Errorf("%+v", u)
		}
		slices.SortFunc(u.Waiters, func(v, w stint.Waiter) int { return int(w.Tier) - int(v.Tier) })
		if w := u.Waiters; len(w) != 2 || w[0].Tier != stint.High || w[0].Waiting != 4 || w[0].Self ||
			w[1].Tier != stint.Low || w[1].Waiting != 1 || !w[1].Self {
			t.Errorf("%+v", w)
		}
	})
}

// party is a participant that keeps a limiter's side of the contract.
type party struct {
	stint.Bucket
	notified chan struct{} // holds one notification
	lock     sync.Mutex    // stands for a limiter's: held while methods are called
}

func two(t *testing.T, factory Factory) (a, b *party) {
	t.Helper()
	var parties []*party
	for _, b := range factory(t, slow, 10, 2) {
		p := &party{Bucket: b, notified: make(chan struct{}, 1)}
		p.Bind(p.notify)
		parties = append(parties, p)
	}
	return parties[0], parties[1]
}

// notify takes the limiter's lock, as a limiter does: an implementation that calls
// it from within a method deadlocks.
func (p *party) notify() {
	p.lock.Lock()
	defer p.lock.Unlock()
	select {
	case p.notified <- struct{}{}:
	default:
	}
}

func (p *party) wait(tier stint.Priority, n int64, waiting int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.Want(tier, n, waiting)
}

func (p *party) Return(n int64) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.Bucket.Return(n)
}

// want takes tokens, and checks how many it gets.
func (p *party) want(t *testing.T, tier stint.Priority, n, want int64) {
	t.Helper()
	p.lock.Lock()
	defer p.lock.Unlock()
	got, again, err := p.Take(tier, n, false)
	if got != want || err != nil || (got == 0) != (again > 0) {
		t.Fatalf("%d of %d tokens, again after %v, %v; want %d", got, n, again, err, want)
	}
}

func (p *party) notice(t *testing.T) {
	t.Helper()
	select {
	case <-p.notified:
	case <-time.After(patience):
		t.Fatal("the waiter was not notified")
	}
}

// many makes limiters take tokens of one bucket from many goroutines, in all tiers, and
// checks that no more are taken than were added.
func many(t *testing.T, factory Factory) {
	t.Helper()
	const rate, capacity, parties, workers, rounds = 100_000, 100, 4, 8, 25
	start := time.Now()
	var wg sync.WaitGroup
	for _, b := range factory(t, rate, capacity, parties) {
		l := stint.NewLimiter(0, stint.LimiterConfig{Bucket: b})
		for w := range workers {
			ctx := stint.WithPriority(t.Context(), stint.Lowest+stint.Priority(w%stint.Tiers))
			wg.Go(func() { work(ctx, t, l, rounds) })
		}
	}
	wg.Wait()
	// Each round takes 3 tokens on average, or gives up and takes none.
	const tokens = parties * workers * rounds * 3
	if took, least := time.Since(start), time.Duration(tokens-capacity)*time.Second/rate; took < least {
		t.Errorf("%d tokens were taken within %v, which must take %v", tokens, took, least)
	}
}

func work(ctx context.Context, t *testing.T, l stint.Limiter, rounds int) {
	t.Helper()
	for i := range rounds {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if err := l.Wait(gone, 1); err == nil {
			t.Error("a cancelled wait was admitted")
		}
		if err := l.Wait(ctx, int64(1+i%5)); err != nil {
			t.Error(err)
		}
	}
}
