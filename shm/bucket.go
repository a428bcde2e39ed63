package shm

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/bucket"
	"github.com/stintgo/stint/shm/internal/arena"
	"github.com/stintgo/stint/shm/internal/pool"
)

// Rate is the configuration of a bucket.
type Rate struct {
	PerSecond float64 `json:"per_second"` // tokens per second, within the limits of [stint.NewLimiter]
	// Capacity is the maximum number of tokens that an idle bucket accumulates; 0 stands
	// for one second's worth, at least 1. With less than about 30 milliseconds' worth,
	// tokens are lost when the process whose turn it is wakes late.
	Capacity int64 `json:"capacity"`
}

func (r Rate) capacity() int64 {
	if r.Capacity == 0 {
		return max(int64(r.PerSecond), 1)
	}
	return r.Capacity
}

func (r Rate) validate() error { return bucket.Validate(r.PerSecond, r.capacity()) }

func (r Rate) meter() bucket.Meter { return bucket.NewMeter(r.PerSecond, r.capacity()) }

// Bucket is a token bucket that processes share, for [stint.LimiterConfig]. Its
// methods are for the limiter, which calls them with its lock held.
//
// The processes take turns. The turn goes to the process in which the highest tier waits;
// among processes with the same tier, to the one that has waited longest. A turn ends
// when the bucket is empty, or after half a millisecond. If the process whose turn it is
// is stopped, the others take over after about 30 milliseconds if there are enough tokens
// for it, otherwise after a second. Tokens that a process took before it died are spent.
//
// The bucket is as full as if it had existed since the machine was started. Its
// clock is the machine's monotonic one, which does not advance while the machine is
// suspended.
type Bucket struct {
	region *Region
	handle *pool.BucketHandle
	meter  bucket.Meter
	notify func()

	refused atomic.Bool // another process had the turn at the last Take

	// Guarded by the limiter's lock.
	turnBegan int64 // when this process took the first tokens of its turn, or 0

	// Written with both the limiter's lock and the region's held.
	want    pool.Want
	need    int64
	tickets [pool.Tiers]uint64 // when each tier began to wait or last ended a turn, as Want reports them; 0: not waiting
}

var _ stint.Bucket = (*Bucket)(nil)

func newBucket(r *Region, index int, rate Rate) *Bucket {
	return &Bucket{region: r, handle: r.member.BucketHandle(index), meter: rate.meter()}
}

// Bucket returns bucket number rate of the geometry's Rates, from 0. It panics if the
// geometry has no such rate. It always returns the same bucket, which is for one limiter of this
// process: a second [stint.NewLimiter] on it panics. For another limiter, open the region
// again.
func (r *Region) Bucket(rate int) *Bucket {
	mustHave("rate", rate, len(r.buckets))
	return r.buckets[rate]
}

// Bind sets the function that notifies the limiter of a change. It panics if it is called
// twice: open the region again for another limiter.
func (b *Bucket) Bind(notify func()) {
	b.region.mu.Lock()
	defer b.region.mu.Unlock()
	if b.notify != nil {
		panic("shm: the bucket of a region is for one limiter; open the region again for another")
	}
	b.notify = notify
}

// Take takes tokens, unless another process has the turn.
func (b *Bucket) Take(tier stint.Priority, n int64, debt bool) (taken int64, again time.Duration, err error) {
	if b.region.closed.Load() {
		return 0, 0, ErrClosed
	}
	if !debt {
		refused := !b.mayTake(tierOf(tier))
		if b.refused.Store(refused); refused {
			return 0, stint.Never, nil
		}
	}
	now := arena.Now()
	for {
		spent := b.handle.Spent()
		after, taken, wait := b.meter.Take(now, spent, n, debt)
		if taken == 0 {
			b.endTurn(now)
			return 0, time.Duration(wait), nil
		}
		if b.handle.Spend(spent, after) {
			b.continueTurn(now)
			return taken, 0, nil
		}
	}
}

// mayTake reports whether it is this process's turn. If it is not, mayTake checks whether
// the processes before it are dead or stopped.
func (b *Bucket) mayTake(tier int) bool {
	if b.handle.MayTake(tier) {
		return true
	}
	b.sweep()
	return b.handle.MayTake(tier)
}

// sweep looks for dead and stopped processes, at most once per period.
func (b *Bucket) sweep() {
	r := b.region
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed.Load() {
		r.sweepLocked()
	}
}

// continueTurn records that tokens were taken in this turn, and ends it after runFor.
func (b *Bucket) continueTurn(now int64) {
	switch {
	case b.want.Count == 0:
	case b.turnBegan == 0:
		b.turnBegan = now
	case now-b.turnBegan > runFor:
		b.endTurn(now)
	}
}

// endTurn puts this process behind the others that wait in its tier, if it has
// taken tokens in this turn.
func (b *Bucket) endTurn(now int64) {
	if b.turnBegan == 0 || b.want.Count == 0 {
		return
	}
	b.turnBegan = 0
	r := b.region
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() || b.handle.Elsewhere() != b.want.Tier {
		return
	}
	b.want.Ticket = pool.Ticket(now) | 1
	b.tickets[b.want.Tier] = b.want.Ticket
	b.handle.Enqueue(b.want, b.need)
}

// Return returns tokens to the bucket.
func (b *Bucket) Return(n int64) {
	if b.region.closed.Load() {
		return
	}
	for {
		spent := b.handle.Spent()
		if b.handle.Spend(spent, b.meter.Return(arena.Now(), spent, n)) {
			break
		}
	}
	b.handle.Wake()
}

// Want sets the highest tier that waits, what its first waiter needs, and the number of
// waiters.
func (b *Bucket) Want(tier stint.Priority, n int64, waiting int) {
	r := b.region
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return
	}
	since := &b.tickets[tierOf(tier)]
	switch {
	case waiting == 0:
		clear(b.tickets[:])
		b.turnBegan = 0
	case *since == 0:
		*since = pool.Ticket(arena.Now()) | 1 // not 0
	}
	clear(b.tickets[tierOf(tier)+1:]) // no waiters there
	_, capacity := b.meter.Rate()
	b.need = min(n, capacity)
	began := b.want.Count == 0
	b.want = pool.Want{Tier: tierOf(tier), Ticket: *since, Count: waiting}
	first := b.handle.Enqueue(b.want, b.need)
	if waiting > 0 {
		if first && (b.refused.Load() || b.holds() >= b.need) {
			r.member.Ring() // the process that had the turn has left since, or tokens were returned
		}
		r.watchLocked(began)
	}
}

// Rivals returns the highest tier that waits in other processes, and the bucket's debt.
func (b *Bucket) Rivals() (tier stint.Priority, waiting bool, debt time.Duration) {
	if b.region.closed.Load() {
		return 0, false, 0
	}
	debt = time.Duration(b.meter.Debt(arena.Now(), b.handle.Spent()))
	t := b.handle.Elsewhere()
	if t >= 0 && b.want.Count == 0 { // no watcher of this process looks for the dead
		b.sweep()
		t = b.handle.Elsewhere()
	}
	if t >= 0 {
		return priorityOf(t), true, debt
	}
	return 0, false, debt
}

// holds returns the number of tokens in the bucket.
func (b *Bucket) holds() int64 {
	return b.meter.Tokens(arena.Now(), b.handle.Spent())
}

// Usage returns the tokens in the bucket and its waiters.
func (b *Bucket) Usage() stint.BucketUsage {
	r := b.region
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		u := stint.BucketUsage{Err: ErrClosed.Error()}
		u.Rate, u.Capacity = b.meter.Rate()
		return u
	}
	return bucketUsage(b.meter, b.handle.State())
}

func bucketUsage(meter bucket.Meter, state pool.BucketState) stint.BucketUsage {
	u := stint.BucketUsage{Tokens: meter.Tokens(arena.Now(), state.Spent)}
	u.Rate, u.Capacity = meter.Rate()
	for _, w := range state.Waiters {
		u.Waiting += w.Waiting
		u.Waiters = append(u.Waiters, stint.Waiter{
			Name:    fmt.Sprintf("%s[%d]", w.Name, w.PID),
			Tier:    priorityOf(w.Tier),
			Waiting: w.Waiting,
			Self:    w.Self,
		})
	}
	return u
}

func priorityOf(tier int) stint.Priority { return stint.Priority(tier) + stint.Lowest }

// ratesOf decodes the rates that are stored in a region.
func ratesOf(numbers []uint64) (rates []Rate) {
	for i := 0; i < len(numbers); i += 2 {
		rates = append(rates, Rate{math.Float64frombits(numbers[i]), int64(numbers[i+1])})
	}
	return rates
}
