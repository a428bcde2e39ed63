package stint

import (
	"time"

	"github.com/stintgo/stint/internal/bucket"
)

// Never is the wait that Take of a [Bucket] returns if only a call of notify can make it
// worth asking again, and that [Limiter.TryAfter] returns for tokens that Try never takes.
const Never = time.Duration(bucket.Never)

// Bucket is the source of a [Limiter]'s tokens when their rate is shared with other
// processes or hosts. The contract:
//
//   - Take takes n ≥ 1 tokens for an entry of a tier, and never blocks. It takes
//     none while an entry of another participant goes first: one of a higher tier,
//     or one of this tier that has waited for longer. A bucket that cannot hold n
//     at once gives as many as it can hold when it is full, a part of n. If it
//     takes none, again is how long to wait until it is worth asking again unless
//     notify is called before; or [Never].
//   - With debt, Take takes all n at once, whatever else waits and whatever the
//     bucket holds, unless it is in debt already. The limiter asks for no more than
//     the rate of Usage earns in 10 s, or its capacity if that is more.
//   - An error means that the tokens cannot be had: the entry that asked gets that
//     error, and the tokens that it was given before are returned. So an
//     implementation decides whether a lost connection is waited out or reported.
//   - Return puts tokens back, as far as the bucket has room for them.
//   - Want reports how many entries wait, the highest tier of them, and how many
//     tokens the first of that tier still needs, whenever one of these changes;
//     waiting is 0 when no entry waits. The implementation calls notify only while an
//     entry waits: each time that the answers of Take and Rivals may have changed,
//     except by the passing of the time that Take has returned.
//   - Rivals returns the highest tier that waits at another participant, if any, and
//     for how long the bucket is in debt. It may be some milliseconds old.
//   - Usage returns what the bucket holds and what waits, over all participants.
//
// Bind is called once, before all others except Usage. The others are called with the
// limiter's lock held, except for the first calls of Usage: they must not block, and must
// not call notify before they return. notify may be called from any goroutine.
type Bucket interface {
	Bind(notify func())
	Take(tier Priority, n int64, debt bool) (taken int64, again time.Duration, err error)
	Return(n int64)
	Want(tier Priority, n int64, waiting int)
	Rivals() (tier Priority, waiting bool, debt time.Duration)
	Usage() BucketUsage
}

// BucketUsage is the state of a shared bucket. Rate and Capacity must be known from the
// beginning, even if Err is not empty: they determine how many bytes a stream pays for at
// once.
type BucketUsage struct {
	Rate     float64  `json:"rate"`     // tokens per second
	Capacity int64    `json:"capacity"` // tokens
	Tokens   int64    `json:"tokens"`   // in the bucket; negative in debt
	Waiting  int      `json:"waiting"`  // entries of all participants that wait
	Waiters  []Waiter `json:"waiters,omitempty"`
	Err      string   `json:"err,omitempty"` // why tokens cannot be had now, empty if they can
}

// Waiter is a participant in a shared bucket that waits for tokens.
type Waiter struct {
	Name    string   `json:"name"` // of the process or host
	Tier    Priority `json:"tier"` // the highest that waits
	Waiting int      `json:"waiting"`
	Self    bool     `json:"self,omitempty"` // the limiter that was asked
}

// sharing is a limiter's state for a shared bucket.
type sharing struct {
	bucket   Bucket
	capacity int64 // of bucket, when it was last read
	wanted   struct {
		tier    int
		n       int64
		waiting int
	}
}

// share makes the limiter take tokens from a shared bucket as well.
func (l *limiter) share(b Bucket) {
	l.shared = &sharing{bucket: b}
	l.bucket.Share(drawing{b})
	b.Bind(l.refresh)
}

// refresh is called by the bucket after a change.
func (l *limiter) refresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.now()
	l.bucket.Advance(at)
	l.settle(at)
}

// tryShared is [Limiter.Try] with a shared bucket.
func (l *limiter) tryShared(n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.shared.tooMuch(n) && l.bucket.TakeShared(l.now(), n)
}

// tooMuch reports whether n exceeds the capacity of the bucket. Then a try fails at once:
// taking a part of the tokens and returning it would delay other callers.
func (s *sharing) tooMuch(n int64) bool {
	if n > s.capacity {
		s.capacity = s.bucket.Usage().Capacity
	}
	return n > s.capacity
}

// want calls Want if the waiting entries have changed.
func (s *sharing) want(b *bucket.Bucket) {
	tier, n, waiting := b.First()
	now := &s.wanted
	if waiting == now.waiting && (waiting == 0 || tier == now.tier && n == now.n) {
		return
	}
	now.tier, now.n, now.waiting = tier, n, waiting
	s.bucket.Want(priorityOf(tier), n, waiting)
}

// reasons returns why n tokens of a shared bucket are not available at a tier now.
func (u *BucketUsage) reasons(p Priority, n int64, now time.Time) []Reason {
	r := Reason{Code: CodeShared, By: u.Err}
	for _, w := range u.Waiters {
		if w.Tier < p || w.Self {
			continue
		}
		r.Ahead[w.Tier.index()] += w.Waiting
		r.By = listed(r.By, w.Name)
	}
	if u.Tokens < n && u.Err == "" {
		r.Tokens = n - u.Tokens
		r.FreeAt = now.Add(time.Duration(min(float64(r.Tokens)/u.Rate*1e9, float64(Never))))
	}
	if r.By == "" && r.Tokens == 0 {
		return nil
	}
	return []Reason{r}
}

// vacant returns the least time until a try may take n tokens of a shared bucket: one
// token's time if the tokens are there, because then another participant waits for them.
func (u *BucketUsage) vacant(n int64) time.Duration {
	if n > u.Capacity && u.Err == "" {
		return Never
	}
	return time.Duration(min(float64(max(n-u.Tokens, 1))/u.Rate*1e9, float64(Never)))
}

// listed appends a name to a list for display.
func listed(list, name string) string {
	if list == "" {
		return name
	}
	return list + ", " + name
}

// drawing adapts a shared bucket to the policy.
type drawing struct{ Bucket }

func (d drawing) Draw(t int, n int64, debt bool) (drawn, again int64, err error) {
	if debt {
		u := d.Usage()
		n = min(n, bucket.MaxDebt(u.Rate, u.Capacity))
	}
	drawn, wait, err := d.Take(priorityOf(t), n, debt)
	return drawn, int64(min(wait, Never)), err
}

func (d drawing) Rivals() (t int, debt int64) {
	tier, waiting, lasts := d.Bucket.Rivals()
	if !waiting {
		return -1, int64(lasts)
	}
	return tier.index(), int64(lasts)
}
