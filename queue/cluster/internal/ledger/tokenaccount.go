package ledger

import "time"

// TokenAccount is the account of a node for a rate: the tokens that it has leased for one limiter.
type TokenAccount struct {
	id        uint64
	rate      string
	perSecond float64
	capacity  int64
	most      int64 // the capacity of the rate, as far as is known: at most that of the account

	seen, spent, returned, refunded uint64

	tier, waiting int
	need          int64 // of the first that waits
	spare, debt   int64
	ask           bool
	low           int64 // the fewest tokens since the last Tick
	rival         int
	sent          RateClaim
}

// NewTokenAccount returns a token account without tokens. The id is new on its node.
func NewTokenAccount(id uint64, rate string, perSecond float64, capacity int64) *TokenAccount {
	return &TokenAccount{id: id, rate: rate, perSecond: perSecond, capacity: capacity, most: capacity, rival: -1}
}

// Tokens returns how many tokens the token account has.
func (a *TokenAccount) Tokens() int64 { return int64(a.seen - a.spent - a.returned) } //nolint:gosec // bounded

// Capacity returns how many tokens the bucket holds, as far as is known.
func (a *TokenAccount) Capacity() int64 { return a.most }

// Waiting returns what Want has set.
func (a *TokenAccount) Waiting() int { return a.waiting }

// Rival returns the highest tier that waits on other nodes, from 0, or -1.
func (a *TokenAccount) Rival() int { return a.rival }

// Take spends n tokens, or as many as the bucket can hold at once; with debt all n. It
// returns how many, 0 if the token account has too few: then the ledger is asked for them.
func (a *TokenAccount) Take(n int64, debt bool) int64 {
	least := min(n, a.most)
	if debt {
		least = n
	}
	if a.Tokens() >= least {
		a.spent += uint64(least) //nolint:gosec // positive
		a.low, a.debt = min(a.low, a.Tokens()), 0
		return least
	}
	switch {
	case debt:
		a.debt = n - a.Tokens()
	case a.waiting == 0:
		a.spare = least - a.Tokens()
	}
	return 0
}

// Return returns n tokens that were taken.
func (a *TokenAccount) Return(n int64) { a.refunded += uint64(max(n, 0)) } //nolint:gosec // positive

// Want sets the highest tier that waits, from 0, what its first entry needs, and how many
// entries wait.
func (a *TokenAccount) Want(tier int, n int64, waiting int) {
	a.tier, a.need, a.waiting = tier, n, waiting
	if waiting == 0 {
		a.debt = 0
	}
}

// Ask makes the next claim ask for the usage of the rate.
func (a *TokenAccount) Ask() { a.ask = true }

// Apply does what an order says, and reports whether there are new tokens, others wait
// no longer, or the bucket holds more or less at once.
func (a *TokenAccount) Apply(o RateOrder) (news bool) {
	if o.Granted > a.seen {
		a.seen = o.Granted
		news = true
	}
	most := a.capacity
	if o.Capacity > 0 {
		most = min(most, o.Capacity)
	}
	news = news || a.rival != o.Rival || a.most != most
	a.rival, a.most = o.Rival, most
	return news
}

// Settle returns the tokens that are left while others wait. It is called when the limiter
// has taken what it can use.
func (a *TokenAccount) Settle() {
	if a.rival >= 0 {
		a.release(a.Tokens())
	}
}

// Tick returns tokens that were not used since the last Tick.
func (a *TokenAccount) Tick() {
	if a.waiting == 0 {
		a.release(min(a.low, a.Tokens()))
	}
	a.low = a.Tokens()
}

// Leave returns all tokens, and reports whether there were any.
func (a *TokenAccount) Leave() bool {
	n := a.Tokens()
	a.release(n)
	return n > 0
}

func (a *TokenAccount) release(n int64) {
	if n > 0 {
		a.returned += uint64(n)
		a.low = min(a.low, a.Tokens())
	}
}

// Lose drops all tokens: a session has ended.
func (a *TokenAccount) Lose() { a.spent, a.low, a.rival = a.seen-a.returned, 0, -1 }

func (a *TokenAccount) needed() int64 {
	if a.waiting == 0 {
		return 0
	}
	return max(0, min(a.need, a.most)-a.Tokens())
}

// extra is how many tokens more the token account would use at once: those of a turn, if several
// entries wait.
func (a *TokenAccount) extra() int64 {
	if a.waiting < 2 {
		return 0
	}
	return min(int64(a.perSecond*turn.Seconds()), a.most)
}

// Urgent reports whether the ledger has to know of the token account at once.
func (a *TokenAccount) Urgent() bool {
	t := &a.sent
	need, known := a.needed(), t.Need-int64(a.seen-t.Seen) //nolint:gosec // bounded
	return a.returned != t.Returned || a.refunded != t.Refunded || a.spare > 0 || a.debt > t.Debt || a.ask ||
		need > max(0, known) || need > 0 && a.tier != t.Tier || known > 0 && a.waiting == 0 ||
		a.spent-t.Spent > uint64(a.most/4) //nolint:gosec // positive
}

// Claim returns the state for the ledger.
func (a *TokenAccount) Claim() RateClaim {
	a.sent = RateClaim{
		ID: a.id, Rate: a.rate, PerSecond: a.perSecond, Capacity: a.capacity,
		Seen: a.seen, Spent: a.spent, Returned: a.returned, Refunded: a.refunded,
		Tier: a.tier, Need: a.needed(), Extra: a.extra(), Spare: a.spare, Debt: a.debt, Waiting: a.waiting, Ask: a.ask,
	}
	a.spare, a.ask = 0, false
	return a.sent
}

// DebtLeft returns for how long the bucket is in debt, as of an order that arrived at a
// time.
func (o *RateOrder) DebtLeft(arrived, now time.Time) time.Duration {
	return max(0, o.Left-now.Sub(arrived))
}
