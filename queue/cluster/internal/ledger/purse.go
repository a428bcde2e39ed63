package ledger

import "time"

// Purse is the side of a node of a rate: the tokens that it has leased for one limiter.
type Purse struct {
	id        uint64
	rate      string
	perSecond float64
	capacity  int64

	seen, spent, returned, refunded uint64

	tier, waiting int
	need          int64 // of the first that waits
	spare, debt   int64
	ask           bool
	low           int64 // the fewest tokens since the last Tick
	rival         int
	sent          RateClaim
}

// NewPurse returns a purse without tokens. The id is new on its node.
func NewPurse(id uint64, rate string, perSecond float64, capacity int64) *Purse {
	return &Purse{id: id, rate: rate, perSecond: perSecond, capacity: capacity, rival: -1}
}

// Tokens returns how many tokens the purse has.
func (p *Purse) Tokens() int64 { return int64(p.seen - p.spent - p.returned) } //nolint:gosec // bounded

// Waiting returns what Want has set.
func (p *Purse) Waiting() int { return p.waiting }

// Rival returns the highest tier that waits on other nodes, from 0, or -1.
func (p *Purse) Rival() int { return p.rival }

// Take spends n tokens, or as many as the bucket can hold at once; with debt all n. It
// returns how many, 0 if the purse has too few: then the ledger is asked for them.
func (p *Purse) Take(n int64, debt bool) int64 {
	least := min(n, p.capacity)
	if debt {
		least = n
	}
	if p.Tokens() >= least {
		p.spent += uint64(least) //nolint:gosec // positive
		p.low, p.debt = min(p.low, p.Tokens()), 0
		return least
	}
	switch {
	case debt:
		p.debt = n - p.Tokens()
	case p.waiting == 0:
		p.spare = least - p.Tokens()
	}
	return 0
}

// Return returns n tokens that were taken.
func (p *Purse) Return(n int64) { p.refunded += uint64(max(n, 0)) } //nolint:gosec // positive

// Want sets the highest tier that waits, from 0, what its first entry needs, and how many
// entries wait.
func (p *Purse) Want(tier int, n int64, waiting int) {
	p.tier, p.need, p.waiting = tier, min(n, p.capacity), waiting
	if waiting == 0 {
		p.debt = 0
	}
}

// Ask makes the next claim ask for the usage of the rate.
func (p *Purse) Ask() { p.ask = true }

// Apply does what an order says, and reports whether there are new tokens, or others wait
// no longer.
func (p *Purse) Apply(o RateOrder) (news bool) {
	if o.Granted > p.seen {
		p.seen = o.Granted
		news = true
	}
	news = news || p.rival != o.Rival
	p.rival = o.Rival
	return news
}

// Settle returns the tokens that are left while others wait. It is called when the limiter
// has taken what it can use.
func (p *Purse) Settle() {
	if p.rival >= 0 {
		p.release(p.Tokens())
	}
}

// Tick returns tokens that were not used since the last Tick.
func (p *Purse) Tick() {
	if p.waiting == 0 {
		p.release(min(p.low, p.Tokens()))
	}
	p.low = p.Tokens()
}

// Leave returns all tokens, and reports whether there were any.
func (p *Purse) Leave() bool {
	n := p.Tokens()
	p.release(n)
	return n > 0
}

func (p *Purse) release(n int64) {
	if n > 0 {
		p.returned += uint64(n)
		p.low = min(p.low, p.Tokens())
	}
}

// Lose drops all tokens: a session has ended.
func (p *Purse) Lose() { p.spent, p.low, p.rival = p.seen-p.returned, 0, -1 }

func (p *Purse) needed() int64 {
	if p.waiting == 0 {
		return 0
	}
	return max(0, p.need-p.Tokens())
}

// extra is how many tokens more the purse would use at once: those of a turn, if several
// entries wait.
func (p *Purse) extra() int64 {
	if p.waiting < 2 {
		return 0
	}
	return min(int64(p.perSecond*turn.Seconds()), p.capacity)
}

// Urgent reports whether the ledger has to know of the purse at once.
func (p *Purse) Urgent() bool {
	t := &p.sent
	need, known := p.needed(), t.Need-int64(p.seen-t.Seen) //nolint:gosec // bounded
	return p.returned != t.Returned || p.refunded != t.Refunded || p.spare > 0 || p.debt > t.Debt || p.ask ||
		need > max(0, known) || need > 0 && p.tier != t.Tier || known > 0 && p.waiting == 0 ||
		p.spent-t.Spent > uint64(p.capacity/4) //nolint:gosec // positive
}

// Claim returns the state for the ledger.
func (p *Purse) Claim() RateClaim {
	p.sent = RateClaim{
		ID: p.id, Rate: p.rate, PerSecond: p.perSecond, Capacity: p.capacity,
		Seen: p.seen, Spent: p.spent, Returned: p.returned, Refunded: p.refunded,
		Tier: p.tier, Need: p.needed(), Extra: p.extra(), Spare: p.spare, Debt: p.debt, Waiting: p.waiting, Ask: p.ask,
	}
	p.spare, p.ask = 0, false
	return p.sent
}

// DebtLeft returns for how long the bucket is in debt, as of an order that arrived at a
// time.
func (o *RateOrder) DebtLeft(arrived, now time.Time) time.Duration {
	return max(0, o.Left-now.Sub(arrived))
}
