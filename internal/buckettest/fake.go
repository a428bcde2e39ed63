// Package buckettest holds a contract suite for implementations of
// [stint.Bucket], and a fake implementation with faults that a test can switch on. A
// bucket in shared memory passes the same suite.
package buckettest

import (
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/bucket"
)

// Pool is a bucket that is shared by participants of one process. It stands for
// shared memory or a cluster. All methods are safe for concurrent use.
type Pool struct {
	mu      sync.Mutex
	meter   bucket.Meter
	start   time.Time
	spent   int64
	out     int64 // tokens taken and not returned
	last    int   // ticket that was issued
	members []*Fake
	broken  error
}

// NewPool returns a full bucket.
func NewPool(rate float64, capacity int64) *Pool {
	return &Pool{meter: bucket.NewMeter(rate, capacity), start: time.Now()}
}

// Join adds a participant.
func (p *Pool) Join(name string) *Fake {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &Fake{pool: p, name: name}
	p.members = append(p.members, f)
	return f
}

// Break makes Take return err to all participants from now on, and notifies those that
// wait; nil ends that.
func (p *Pool) Break(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = err
	for _, f := range p.members {
		f.notifyLocked()
	}
}

// Out returns how many tokens have been taken and not returned.
func (p *Pool) Out() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out
}

func (p *Pool) now() int64 { return int64(time.Since(p.start)) }

// notifyFirstLocked notifies the first participant in the queue.
func (p *Pool) notifyFirstLocked() {
	if waiting := p.queueLocked(nil); len(waiting) > 0 {
		waiting[0].notifyLocked()
	}
}

// queueLocked returns the waiting participants except but, in the order of the queue.
func (p *Pool) queueLocked(but *Fake) []*Fake {
	queue := slices.DeleteFunc(slices.Clone(p.members), func(f *Fake) bool { return f.waiting == 0 || f == but })
	slices.SortFunc(queue, func(f, g *Fake) int {
		if f.tier != g.tier {
			return int(g.tier) - int(f.tier)
		}
		return f.ticket - g.ticket
	})
	return queue
}

// Fake is one participant of a [Pool]: the Bucket of one limiter.
type Fake struct {
	pool *Pool
	name string

	// Guarded by the pool's mu.
	notify  func()
	tier    stint.Priority
	waiting int
	ticket  int
	took    bool // it has taken tokens since it got its ticket
	takes   int
}

var _ stint.Bucket = (*Fake)(nil)

// Bind sets the function that notifies the participant.
func (f *Fake) Bind(notify func()) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	f.notify = notify
}

// notifyLocked notifies the participant, from another goroutine because the caller holds
// a limiter's lock.
func (f *Fake) notifyLocked() {
	if f.waiting > 0 {
		go f.notify()
	}
}

// Take takes tokens.
func (f *Fake) Take(tier stint.Priority, n int64, debt bool) (taken int64, again time.Duration, err error) {
	p := f.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	f.takes++
	if p.broken != nil {
		return 0, 0, p.broken
	}
	if queue := p.queueLocked(f); !debt && len(queue) > 0 && !f.goesBefore(queue[0], tier) {
		return 0, stint.Never, nil
	}
	after, taken, wait := p.meter.Take(p.now(), p.spent, n, debt)
	if taken > 0 {
		p.spent, f.took = after, true
		p.out += taken
		return taken, 0, nil
	}
	if f.took && f.waiting > 0 { // its turn has ended
		f.renewLocked()
		p.notifyFirstLocked()
	}
	return 0, time.Duration(wait), nil
}

func (f *Fake) goesBefore(other *Fake, tier stint.Priority) bool {
	if tier != other.tier {
		return tier > other.tier
	}
	return f.waiting > 0 && f.tier == tier && f.ticket < other.ticket
}

func (f *Fake) renewLocked() {
	f.pool.last++
	f.ticket, f.took = f.pool.last, false
}

// Return returns tokens to the bucket.
func (f *Fake) Return(n int64) {
	p := f.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent = p.meter.Return(p.now(), p.spent, n)
	p.out -= n
	p.notifyFirstLocked()
}

// Want records the waiters.
func (f *Fake) Want(tier stint.Priority, _ int64, waiting int) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	if f.waiting == 0 || tier != f.tier {
		f.renewLocked()
	}
	f.tier, f.waiting = tier, waiting
	f.pool.notifyFirstLocked()
}

// Rivals returns the highest tier that waits in other participants, and the bucket's
// debt.
func (f *Fake) Rivals() (tier stint.Priority, waiting bool, debt time.Duration) {
	p := f.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	debt = time.Duration(p.meter.Debt(p.now(), p.spent))
	if queue := p.queueLocked(f); len(queue) > 0 {
		return queue[0].tier, true, debt
	}
	return 0, false, debt
}

// Usage returns the tokens in the bucket and its waiters.
func (f *Fake) Usage() stint.BucketUsage {
	p := f.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	u := stint.BucketUsage{Tokens: p.meter.Tokens(p.now(), p.spent)}
	u.Rate, u.Capacity = p.meter.Rate()
	if p.broken != nil {
		u.Err = p.broken.Error()
	}
	for _, m := range p.queueLocked(nil) {
		u.Waiting += m.waiting
		u.Waiters = append(u.Waiters, stint.Waiter{Name: m.name, Tier: m.tier, Waiting: m.waiting, Self: m == f})
	}
	return u
}

// Takes returns the number of calls of Take so far.
func (f *Fake) Takes() int {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	return f.takes
}
