package stint

import (
	"time"

	"github.com/stintgo/stint/internal/bucket"
)

// LimiterWaiting is a caller that waits for tokens of a [Limiter], and why.
type LimiterWaiting struct {
	Priority Priority  `json:"priority"`
	Tokens   int64     `json:"tokens"` // that it asked for
	Since    time.Time `json:"since"`
	// Ahead is how many callers go first.
	Ahead int `json:"ahead"`
	// Reasons is what keeps its tokens from it, the binding one first.
	Reasons []Reason `json:"reasons"`
	// FreeAt is when the tokens will be there for it and for all that go first, if
	// nobody comes before it and nobody gives up. The starvation guard may admit it
	// before that. Of a shared bucket it counts only what this caller needs.
	FreeAt time.Time `json:"free_at"`
}

// Why says what would keep n tokens from a caller who came for them now, the reason
// that binds first; none if [Limiter.Wait] would take them at once. The tier is
// [Normal] unless At says otherwise. It tells of those who go first ([CodeBehind]), of
// the tokens that are short and when the bucket will have them if nobody goes first
// ([CodeRate]), and of both where the rate is shared ([CodeShared]). A negative n has
// no reason: it is refused.
func (l Limiter) Why(n int64) []Reason {
	c := l.c.made()
	if n < 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.now()
	c.bucket.Advance(at)
	defer c.settle()
	w := bucket.Waiting{Tier: l.tier.index(), Need: n, AloneAt: c.bucket.FreeAt(at, n)}
	if n == 0 && c.bucket.Queued(w.Tier) == 0 {
		return nil // it waits for those before it in its tier only
	}
	var ahead [Tiers]int
	for t := w.Tier; t < Tiers; t++ {
		ahead[t] = c.bucket.Queued(t)
	}
	seen := c.lookAt(at)
	return seen.reasons(&w, ahead)
}

// Waiting returns all who wait for tokens, in the order in which they will have them if
// nobody comes and nobody gives up, each with the reasons. It is for people: it takes
// time and memory in proportion to their number, and holds up others who wait or begin
// to wait for a part of that time, about a millisecond for ten thousand of them.
func (l Limiter) Waiting() []LimiterWaiting {
	waiting, seen := l.c.made().waiting()
	all := make([]LimiterWaiting, 0, len(waiting))
	var before [Tiers]int
	for i := range waiting {
		w := &waiting[i]
		all = append(all, seen.explain(w, before, i))
		before[w.Tier]++
	}
	return all
}

// waiting returns those who wait, and what explains it.
func (l *limiter) waiting() ([]bucket.Waiting, look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.now()
	waiting := l.bucket.Waiting(at)
	l.settle()
	return waiting, l.lookAt(at)
}

// look is what explains a wait besides the entry itself, at one time.
type look struct {
	start  time.Time // of the limiter's clock
	now    int64
	holds  int64        // tokens, of the limiter's own
	shared *BucketUsage // nil if there is none
}

// lookAt needs the lock.
func (l *limiter) lookAt(now int64) look {
	seen := look{start: l.start, now: now, holds: l.bucket.Tokens(now)}
	if l.shared != nil {
		usage := l.shared.bucket.Usage()
		seen.shared = &usage
	}
	return seen
}

func (s *look) time(at int64) time.Time { return s.start.Add(time.Duration(at)) }

// explain describes one that waits behind others of each tier.
func (s *look) explain(w *bucket.Waiting, ahead [Tiers]int, before int) LimiterWaiting {
	e := LimiterWaiting{
		Priority: priorityOf(w.Tier), Tokens: w.Asked, Since: s.time(w.Since),
		Ahead: before, Reasons: s.reasons(w, ahead), FreeAt: s.time(w.FreeAt),
	}
	for _, r := range e.Reasons {
		if r.Code == CodeShared && r.FreeAt.After(e.FreeAt) {
			e.FreeAt = r.FreeAt
		}
	}
	return e
}

// reasons says who goes first, and how many tokens are short.
func (s *look) reasons(w *bucket.Waiting, ahead [Tiers]int) (all []Reason) {
	if ahead != [Tiers]int{} {
		all = append(all, Reason{Code: CodeBehind, Ahead: ahead})
	}
	if s.holds < w.Need && w.Need > 0 {
		all = append(all, Reason{Code: CodeRate, Tokens: w.Need - s.holds, FreeAt: s.time(w.AloneAt)})
	}
	if s.shared != nil && w.Need > 0 {
		all = append(all, s.shared.reasons(priorityOf(w.Tier), w.Need, s.time(s.now))...)
	}
	return all
}
