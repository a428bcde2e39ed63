package cluster

import (
	"fmt"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/bucket"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster/internal/ledger"
)

// RateConfig configures a rate over hosts. If hosts differ, the smallest rate and the
// smallest capacity of the hosts that use it at present count.
type RateConfig struct {
	PerSecond float64 // tokens per second, within the limits of [stint.NewLimiter]
	// Capacity is how many tokens collect while none is used; 0 stands for one second's
	// worth, at least 1. With less than a few round trips' worth, tokens are lost.
	Capacity int64
}

// Bucket is a token bucket over all nodes, for [stint.LimiterConfig]. Its methods are for the
// limiter, which calls them with its lock held.
//
// The leader has the bucket. A node leases what its first entry needs, and 10 ms' worth more
// if several wait. Tokens that it does not use go back when another host waits, or after
// about a second. Leased tokens count as in the bucket, so in no time is more used on all
// hosts than the rate gives in it, and once the capacity. Entries are served by tier, then by
// order of arrival, over all hosts; a host that has waited for a second goes first.
//
// The bucket of a new leader is empty, that of the first one too. Nodes drop tokens of a
// leader with which they have lost contact. Until they notice, 4.5 s at most, they may use
// those that they had: for so long after a change of leader, up to one capacity more than
// otherwise may be used, once. Tokens of a host that is killed are lost.
//
// So that it never blocks, Take of a bucket whose node has too few tokens takes none, and
// asks the leader for them: [stint.Limiter.Try] may fail although the bucket has tokens, and
// succeed a moment later.
type Bucket struct {
	p    *permits
	name string
	cfg  RateConfig

	// Guarded by the mu of p.
	account      *ledger.TokenAccount
	notify       func()
	notification bool // is about to be made
	order        ledger.RateOrder
	arrived      time.Time // of the order
	usage        ledger.RateUsage
}

var _ stint.Bucket = (*Bucket)(nil)

// Bucket returns a part of the rate of a name, for one limiter, until the node closes. Its
// errors wrap [queue.ErrInvalid] or [queue.ErrClosed]. It does not wait for the leader.
func (n *Node) Bucket(name string, cfg RateConfig) (*Bucket, error) {
	if cfg.Capacity == 0 {
		cfg.Capacity = max(int64(cfg.PerSecond), 1)
	}
	err := validName(name)
	if err == nil {
		err = bucket.Validate(cfg.PerSecond, cfg.Capacity)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: rate %q: %w", queue.ErrInvalid, name, err)
	}
	p := n.permits
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return nil, p.ended
	}
	b := &Bucket{p: p, name: name, cfg: cfg}
	b.account = ledger.NewTokenAccount(uint64(len(p.buckets)+1), name, cfg.PerSecond, cfg.Capacity)
	p.buckets = append(p.buckets, b)
	p.start()
	return b, nil
}

// Bind sets the function that notifies the limiter. It panics if it is called twice.
func (b *Bucket) Bind(notify func()) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	if b.notify != nil {
		panic("cluster: a Bucket is for one limiter; call Node.Bucket again for another")
	}
	b.notify = notify
}

// Take takes tokens that the node has, or asks the leader for them. It fails with
// [queue.ErrClosed].
func (b *Bucket) Take(_ stint.Priority, n int64, debt bool) (taken int64, again time.Duration, err error) {
	p := b.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return 0, 0, p.ended
	}
	b.expireLocked()
	if taken = b.account.Take(n, debt); taken == 0 {
		again = stint.Never
	}
	b.newsLocked()
	return taken, again, nil
}

// Return returns tokens to the leader.
func (b *Bucket) Return(n int64) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	b.account.Return(n)
	b.newsLocked()
}

// Want sets the highest tier that waits, what its first entry needs, and how many wait.
func (b *Bucket) Want(tier stint.Priority, n int64, waiting int) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	b.account.Want(int(tier-stint.Lowest), n, waiting)
	if b.account.Tokens() > 0 {
		b.notifyLocked()
	}
	b.newsLocked()
}

// Rivals returns the highest tier that waits on other nodes, and for how long the bucket is
// in debt.
func (b *Bucket) Rivals() (tier stint.Priority, waiting bool, debt time.Duration) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	debt = b.order.DebtLeft(b.arrived, clock.Now())
	if rival := b.account.Rival(); rival >= 0 {
		return stint.Lowest + stint.Priority(rival), true, debt
	}
	return 0, false, debt
}

// Usage returns the tokens, also those that nodes have leased, and the waiters, as of a
// moment ago: the leader is asked again at each call, and regularly while an entry of this
// node waits.
func (b *Bucket) Usage() stint.BucketUsage {
	p := b.p
	p.mu.Lock()
	defer p.mu.Unlock()
	b.account.Ask()
	b.newsLocked()
	u := stint.BucketUsage{Rate: b.cfg.PerSecond, Capacity: b.account.Capacity(), Tokens: b.usage.Tokens}
	for _, w := range b.usage.Waiters {
		u.Waiting += w.Waiting
		u.Waiters = append(u.Waiters, stint.Waiter{
			Name: w.Name, Tier: stint.Lowest + stint.Priority(w.Tier), Waiting: w.Waiting, Self: w.Own,
		})
	}
	u.Err = p.errLocked()
	return u
}

// newsLocked triggers a report to the leader, if there is something urgent to report.
func (b *Bucket) newsLocked() {
	if b.account.Urgent() {
		wake(b.p.news)
	}
}

// expireLocked drops tokens whose lease has ended.
func (b *Bucket) expireLocked() {
	if b.account.Tokens() > 0 && !b.p.validLocked(clock.Now()) {
		b.account.Lose()
	}
}

// notifyLocked notifies the limiter soon, and then returns what it leaves, if others wait.
func (b *Bucket) notifyLocked() {
	if !b.notification {
		b.notification = true
		b.p.laterLocked(b.offer)
	}
}

func (b *Bucket) offer() {
	p := b.p
	p.mu.Lock()
	b.notification = false
	call := b.notify != nil && b.account.Waiting() > 0
	p.mu.Unlock()
	if call {
		b.notify()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !b.notification {
		b.account.Settle()
	}
	b.newsLocked()
}

// applyLocked applies an order of the ledger.
func (b *Bucket) applyLocked(o ledger.RateOrder, now time.Time) {
	b.order, b.arrived = o, now
	if b.account.Apply(o) {
		b.notifyLocked()
	}
}
