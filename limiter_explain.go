package stint

import (
	"slices"
	"time"

	"github.com/stintgo/stint/internal/bucket"
)

// LimiterWaiting describes a caller that waits for tokens of a [Limiter], and why it does.
type LimiterWaiting struct {
	Priority Priority  `json:"priority"`
	Key      string    `json:"key,omitempty"`
	Tokens   int64     `json:"tokens"` // requested
	Since    time.Time `json:"since"`
	// Ahead is the maximum number of entries that get tokens first: callers of its key, and
	// entries of the limiter's queue, in which each key has one.
	Ahead int `json:"ahead"`
	// Reasons is why it does not get its tokens, the binding reason first.
	Reasons []Reason `json:"reasons"`
	// FreeAt is when the tokens will be available for this caller and for all before it, if
	// no caller arrives ahead of it or gives up. The starvation guard may admit it earlier.
	// With a key it is the earliest time at which both the key's bucket and the limiter's
	// have them. Of a shared bucket only the tokens that this caller needs are counted.
	FreeAt time.Time `json:"free_at"`
}

// Why returns what would keep n tokens from a caller that asked for them now, the binding
// reason first, or nothing if [Limiter.Wait] would take them at once. The tier is
// [Normal] unless At says otherwise. The reasons are callers that go first
// ([CodeBehind]), tokens that are short, with when the bucket will have them if no caller
// goes first ([CodeRate]), and both of these where the rate is shared ([CodeShared]).
// Reasons of the limiter's key have it as their Key and come first. For a negative n, which
// is refused, there is none.
func (l Limiter) Why(n int64) []Reason {
	c := l.c.made()
	if n < 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.catchUp()
	w := waiter{key: l.key, overall: c.newcomer(at, l.tier.index(), n)}
	if l.key != "" {
		w.holds = c.keys.Tokens(at, l.key)
		w.ofKey = place{Waiting: w.overall.Waiting}
		w.ofKey.AloneAt = c.keys.FreeAt(at, l.key, n)
		w.ofKey.ahead = ahead(l.tier.index(), func(t int) int { return c.keys.Queued(l.key, t) })
	}
	seen := c.momentAt(at)
	return seen.reasons(&w)
}

// Waiting returns all callers that wait for tokens, with and without a key, in the order in
// which they will get them if no caller arrives or gives up, each with the reasons. It
// is meant for display: it takes time and memory in proportion to their number, and
// delays callers that wait or begin to wait for a part of that time.
func (l Limiter) Waiting() []LimiterWaiting {
	waiting, seen := l.c.made().waiting()
	all := make([]LimiterWaiting, 0, len(waiting))
	for i := range waiting {
		all = append(all, seen.explain(&waiting[i]))
	}
	slices.SortStableFunc(all, func(a, b LimiterWaiting) int { return a.FreeAt.Compare(b.FreeAt) })
	return all
}

// place is an entry in a queue, and the number of entries of each tier before it.
type place struct {
	bucket.Waiting
	ahead [Tiers]int
}

// waiter is a caller that waits: its place in the limiter's queue and, with a key, in the
// key's queue.
type waiter struct {
	key     string
	holds   int64 // tokens in the key's bucket
	ofKey   place
	overall place
}

// waiting returns the callers that wait, and the state that explains their waits.
func (l *limiter) waiting() ([]waiter, moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.catchUp()
	var all []waiter
	first := map[string]place{} // of keys
	for p := range places(l.bucket.Waiting(at)) {
		if p.Key != "" {
			first[p.Key] = p
		} else {
			all = append(all, waiter{overall: p})
		}
	}
	for _, q := range l.keys.Queues(at) {
		var before int64 // when the one before it in the key has the limiter's tokens
		for p := range places(q.Waiting) {
			w := waiter{key: q.Key, holds: q.Holds, ofKey: p, overall: first[q.Key]}
			if p.Asked == 0 { // it asks for none of the limiter's
				w.overall = place{}
			} else if w.overall.Tier != p.Tier || w.overall.Asked != p.Asked || p.ahead[p.Tier] > 0 {
				w.overall = l.newcomer(at, p.Tier, p.Asked)
			}
			before = max(before, w.overall.FreeAt)
			w.overall.FreeAt = before
			all = append(all, w)
		}
	}
	return all, l.momentAt(at)
}

// places yields the entries of a queue in its order, each with the counts of those before it.
func places(queue []bucket.Waiting) func(yield func(place) bool) {
	return func(yield func(place) bool) {
		var ahead [Tiers]int
		for _, w := range queue {
			if !yield(place{Waiting: w, ahead: ahead}) {
				return
			}
			ahead[w.Tier]++
		}
	}
}

// newcomer returns the place in the limiter's queue of a caller that arrives now for n tokens.
func (l *limiter) newcomer(at int64, t int, n int64) place {
	return place{
		Waiting: bucket.Waiting{
			Tier: t, Asked: n, Need: n, AloneAt: l.bucket.FreeAt(at, n), FreeAt: l.bucket.InTurn(at, t, n),
		},
		ahead: ahead(t, l.bucket.Queued),
	}
}

// ahead returns the number of queued entries of each tier that go before an arrival of tier t.
func ahead(t int, queued func(t int) int) (all [Tiers]int) {
	for ; t < Tiers; t++ {
		all[t] = queued(t)
	}
	return all
}

// moment is the state of a limiter at one moment that explains the waits for it.
type moment struct {
	wall   time.Time // by the system's clock, which may have been set since the limiter was made
	now    int64
	holds  int64        // tokens, of the limiter's own
	shared *BucketUsage // nil if there is none
}

// momentAt needs the lock.
func (l *limiter) momentAt(at int64) moment {
	seen := moment{wall: now(), now: at, holds: l.bucket.Tokens(at)}
	if l.shared != nil {
		usage := l.shared.bucket.Usage()
		seen.shared = &usage
	}
	return seen
}

func (s *moment) time(at int64) time.Time { return s.wall.Add(time.Duration(at - s.now)) }

// explain describes a caller that waits.
func (s *moment) explain(w *waiter) LimiterWaiting {
	p, freeAt := &w.overall, w.overall.FreeAt
	if w.key != "" {
		p, freeAt = &w.ofKey, max(freeAt, w.ofKey.FreeAt)
	}
	e := LimiterWaiting{
		Priority: priorityOf(p.Tier), Key: w.key, Tokens: p.Asked, Since: s.time(p.Since),
		Reasons: s.reasons(w), FreeAt: s.time(freeAt),
	}
	for t := range Tiers {
		e.Ahead += w.ofKey.ahead[t] + w.overall.ahead[t]
	}
	for _, r := range e.Reasons {
		if r.Code == CodeShared && r.FreeAt.After(e.FreeAt) {
			e.FreeAt = r.FreeAt
		}
	}
	return e
}

// reasons returns which entries go first and how many tokens are missing: of the key, of the
// limiter, and of the shared bucket.
func (s *moment) reasons(w *waiter) (all []Reason) {
	if w.key != "" {
		all = s.short(all, w.key, &w.ofKey, w.holds)
	}
	if w.overall.Need == 0 && w.key != "" {
		return all // none of the limiter's tokens are asked for
	}
	all = s.short(all, "", &w.overall, s.holds)
	if s.shared != nil && w.overall.Need > 0 {
		all = append(all, s.shared.reasons(priorityOf(w.overall.Tier), w.overall.Need, s.time(s.now))...)
	}
	return all
}

// short appends the reasons of one queue, of the limiter or of a key, whose bucket has holds
// tokens. An entry that needs no tokens waits only for the entries before it in its tier.
func (s *moment) short(all []Reason, key string, p *place, holds int64) []Reason {
	if p.ahead != [Tiers]int{} && (p.Asked > 0 || p.ahead[p.Tier] > 0) {
		all = append(all, Reason{Code: CodeBehind, Key: key, Ahead: p.ahead})
	}
	if holds < p.Need && p.Need > 0 {
		all = append(all, Reason{Code: CodeRate, Key: key, Tokens: p.Need - holds, FreeAt: s.time(p.AloneAt)})
	}
	return all
}
