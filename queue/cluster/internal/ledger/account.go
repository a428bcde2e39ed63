package ledger

// Account is one user of a limit: a scheduler on a node. Its permits are valid while the
// lease of the node is; the caller knows that.
type Account struct {
	id    uint64
	limit string
	max   int

	seen     uint64 // permits that were received
	returned uint64 // permits of them that were returned or lost
	used     int
	keep     int
	low      int // the fewest that were idle since the last Tick

	tier, waiting int
	busy          bool // it waits, and does not use the permits that it gets
	spare, ask    bool
	sent          Claim // the last one
}

// NewAccount returns an account without permits. The id is new on its node.
func NewAccount(id uint64, limit string, most int) *Account {
	return &Account{id: id, limit: limit, max: most, keep: All}
}

// Held returns the number of permits, used or not.
func (a *Account) Held() int { return int(a.seen - a.returned) } //nolint:gosec // at most Max

// Used returns the number of permits in use.
func (a *Account) Used() int { return a.used }

// Idle returns the number of permits that are not in use.
func (a *Account) Idle() int { return a.Held() - a.used }

// Waiting returns what Want has set.
func (a *Account) Waiting() int { return a.waiting }

// Take takes a permit into use, and reports whether there was one. If there was none, and
// nothing waits, the ledger is asked for one.
func (a *Account) Take() bool {
	if a.Idle() > 0 {
		a.used++
		a.low = min(a.low, a.Idle())
		return true
	}
	a.busy = false
	a.spare = a.waiting == 0
	return false
}

// Put ends the use of a permit. It is kept if the ledger does not want it.
func (a *Account) Put() {
	a.used--
	a.settle()
}

// settle returns permits that may not be kept, as far as they are not in use.
func (a *Account) settle() { a.release(min(a.Idle(), a.Held()-a.keep)) }

func (a *Account) release(n int) {
	if n > 0 {
		a.returned += uint64(n)
		a.low = min(a.low, a.Idle())
	}
}

// Want sets the highest tier that waits, from 0, and how many entries wait.
func (a *Account) Want(tier, waiting int) {
	a.tier, a.waiting = tier, waiting
	if waiting == 0 {
		a.busy = false
	}
}

// Busy records that what waits does not use the available permits. The account needs
// no others until Take finds none.
func (a *Account) Busy() { a.busy = true }

// Ask makes the next claim ask for the usage of the limit.
func (a *Account) Ask() { a.ask = true }

// Tick returns permits that were not in use since the last Tick, unless something waits for
// them.
func (a *Account) Tick() {
	if a.waiting == 0 || a.busy {
		a.release(min(a.low, a.Idle()))
	}
	a.low = a.Idle()
}

// Apply does what an order says. It reports whether the account has received permits, and
// whether it has lost all that it had: the first order of a session can revoke them.
func (a *Account) Apply(o Order) (received, revoked bool) {
	if revoked = a.returned < o.Revoked; revoked {
		a.Lose()
	}
	if o.Granted > a.seen {
		a.seen = o.Granted
		received = true
	}
	a.keep = o.Keep
	a.settle()
	return received, revoked
}

// Leave returns the permits that are not in use. It reports whether there were any.
func (a *Account) Leave() bool {
	n := a.Idle()
	a.release(n)
	return n > 0
}

// Lose ends all permits: the lease of the node has ended.
func (a *Account) Lose() { a.returned, a.used, a.low, a.busy = a.seen, 0, 0, false }

func (a *Account) need() int {
	if a.busy {
		return 0
	}
	return min(max(0, a.waiting-a.Idle()), a.max)
}

// Urgent reports whether the ledger has to know of the account at once: it has returned
// permits, or needs other ones than the ledger knows, or more. That it needs fewer can wait,
// unless it needs none. While others wait, the ledger also has to know what has arrived.
func (a *Account) Urgent() bool {
	t := &a.sent
	need, known := a.need(), t.Need-int(a.seen-t.Seen) //nolint:gosec // at most Max
	return a.returned != t.Returned || need > max(0, known) || need > 0 && a.tier != t.Tier ||
		a.spare || a.ask || a.keep != All && a.seen != t.Seen || known > 0 && (a.waiting == 0 || a.busy)
}

// Claim returns the state for the ledger.
func (a *Account) Claim() Claim {
	a.sent = Claim{
		ID: a.id, Limit: a.limit, Max: a.max, Seen: a.seen, Returned: a.returned,
		Tier: a.tier, Need: a.need(), Spare: a.spare, Used: a.used, Waiting: a.waiting, Ask: a.ask,
	}
	a.spare, a.ask = false, false
	return a.sent
}
