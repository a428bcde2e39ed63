package bucket_test

import (
	"math/big"
	"slices"

	"github.com/stintgo/stint/internal/bucket"
)

// pace is a rate of num / 2^exp tokens a nanosecond, so that a float64 holds it
// exactly and nothing has to be forgiven in a comparison.
type pace struct {
	num int64
	exp uint
}

// perSecond returns the rate as the bucket takes it. num stays below 2²³, so
// that this is exact.
func (p pace) perSecond() float64 { return float64(p.num) * 1e9 / float64(uint64(1)<<p.exp) }

// times returns how many whole tokens are earned in a time, and the rest in
// 2^-exp tokens.
func (p pace) times(ns int64) (tokens int64, rest *big.Int) {
	product := new(big.Int).Mul(big.NewInt(ns), big.NewInt(p.num))
	whole := new(big.Int).Rsh(product, p.exp)
	rest = product.Sub(product, new(big.Int).Lsh(whole, p.exp))
	return whole.Int64(), rest
}

// timeFor returns the first nanosecond at which some tokens are earned.
func (p pace) timeFor(tokens int64) int64 {
	if tokens <= 0 {
		return 0
	}
	product := new(big.Int).Lsh(big.NewInt(tokens), p.exp)
	product.Add(product, big.NewInt(p.num-1))
	if product.Div(product, big.NewInt(p.num)); !product.IsInt64() {
		return bucket.Forever
	}
	return product.Int64()
}

type modelEntry struct {
	id, tier    int
	asked, need int64
}

type grant struct {
	id int
	at int64
}

// model is what the bucket must do, written to be obviously right: exact
// arithmetic, one slice of waiters in the order in which they came, and rules that
// are evaluated on it again after every change. It is advanced to every time at which
// something happens, so it plans nothing.
type model struct {
	pace     pace
	capacity int64
	base     int64 // tokens earned at origin
	origin   int64
	spent    int64
	strict   bool  // lateness is not made up for
	credit   int64 // tokens kept past the capacity
	until    int64 // when they end

	now     int64
	waiting []*modelEntry
	behind  [bucket.Tiers]int64
	grants  []grant
}

func newModel(p pace, capacity int64) *model {
	return &model{pace: p, capacity: capacity, base: capacity}
}

func (m *model) earned(at int64) int64 {
	tokens, _ := m.pace.times(max(at-m.origin, 0))
	return m.base + tokens
}

// when returns the first nanosecond at which a count of tokens is earned, or
// the end of time.
func (m *model) when(tokens int64) int64 {
	return m.origin + min(m.pace.timeFor(tokens-m.base), bucket.Forever)
}

func (m *model) top() int {
	top := -1
	for _, e := range m.waiting {
		top = max(top, e.tier)
	}
	return top
}

func (m *model) head(tier int) *modelEntry {
	for _, e := range m.waiting {
		if e.tier == tier {
			return e
		}
	}
	return nil
}

func (m *model) queued(tier int) (n int) {
	for _, e := range m.waiting {
		if e.tier == tier {
			n++
		}
	}
	return n
}

// spill drops what an idle bucket cannot hold.
func (m *model) spill() {
	holds := m.capacity
	if m.now < m.until {
		holds += m.credit
	}
	m.spent = max(m.spent, m.earned(m.now)-holds)
}

func (m *model) tokens() int64 {
	if len(m.waiting) > 0 {
		return min(m.earned(m.now)-m.spent, m.capacity)
	}
	m.spill()
	return m.earned(m.now) - m.spent
}

// next returns when something will happen by itself.
func (m *model) next() (at int64, ok bool) {
	top := m.top()
	if top < 0 {
		return 0, false
	}
	at = m.when(m.spent + m.head(top).need)
	for tier := range top {
		if m.head(tier) != nil {
			at = min(at, max(m.now, m.when(m.spent))+max(bucket.GuardAfter-m.behind[tier], 0))
		}
	}
	return at, true
}

// pass lets time go by, in which nothing happened.
func (m *model) pass(now int64) {
	idle := len(m.waiting) == 0
	from := max(m.now, m.when(m.spent))
	for tier := range m.top() {
		if m.head(tier) != nil {
			m.behind[tier] += max(now-from, 0)
		}
	}
	if !idle && !m.strict {
		if due := m.when(m.spent + m.head(m.top()).need); now >= due {
			m.now = now
			m.admit(m.head(m.top()))
			m.credit = m.earned(now) - max(m.spent, m.earned(now-bucket.LateMax))
			m.until = now + bucket.CreditLife
			m.spill()
		}
	}
	m.now = now
	if !idle && m.strict {
		m.clamp()
	}
	m.settle()
}

// clamp drops what a bucket with waiters cannot hold, except for what the first waiter
// needs beyond the capacity, and what was earned by a late wake.
func (m *model) clamp() {
	head, late := m.head(m.top()), int64(0)
	if due := m.when(m.spent + head.need); m.now > due {
		late = m.earned(m.now) - m.earned(max(due, m.now-bucket.LateMax))
	}
	excess := m.earned(m.now) - m.spent - m.capacity - late
	if excess <= 0 {
		return
	}
	if beyond := head.need - m.capacity; beyond > 0 {
		head.need -= min(excess, beyond)
		m.behind[head.tier] = 0
	}
	m.spent += excess
}

func (m *model) admit(e *modelEntry) {
	m.waiting = slices.DeleteFunc(m.waiting, func(o *modelEntry) bool { return o == e })
	m.behind[e.tier] = 0
	m.spent += e.need
	e.need = 0
	m.grants = append(m.grants, grant{e.id, m.now})
}

// settle applies the first rule that says something, until none does.
func (m *model) settle() {
	for m.settleOne() {
	}
}

func (m *model) settleOne() bool {
	for tier := range bucket.Tiers {
		if e := m.head(tier); e != nil && e.need == 0 {
			m.admit(e)
			return true
		}
	}
	top := m.top()
	if top < 0 {
		return false
	}
	e := m.head(top)
	holds := m.earned(m.now) - m.spent
	if holds >= e.need {
		m.admit(e)
		return true
	}
	if holds > m.capacity {
		e.need -= holds - m.capacity
		m.spent += holds - m.capacity
		m.behind[top] = 0
		return true
	}
	if guarded := m.longestBehind(top); guarded >= 0 && holds >= 0 {
		e := m.head(guarded)
		worth, _ := m.pace.times(bucket.DebtLasts)
		part := min(e.need, max(worth, m.capacity))
		e.need -= part
		m.spent += part
		m.behind[guarded] = 0
		return true
	}
	return false
}

func (m *model) longestBehind(top int) int {
	found := -1
	for tier := range top {
		if m.head(tier) == nil || m.behind[tier] < bucket.GuardAfter {
			continue
		}
		if found < 0 || m.behind[tier] >= m.behind[found] {
			found = tier
		}
	}
	return found
}

func (m *model) take(n int64) bool {
	if len(m.waiting) > 0 {
		return false
	}
	m.spill()
	if n > 0 && m.earned(m.now)-m.spent < n {
		return false
	}
	m.spent += n
	return true
}

func (m *model) push(id, tier int, n int64) {
	if len(m.waiting) == 0 {
		m.spill()
	}
	if m.head(tier) == nil {
		m.behind[tier] = 0
	}
	m.waiting = append(m.waiting, &modelEntry{id: id, tier: tier, asked: n, need: n})
	m.settle()
}

func (m *model) remove(id int) {
	i := slices.IndexFunc(m.waiting, func(e *modelEntry) bool { return e.id == id })
	e := m.waiting[i]
	m.waiting = slices.Delete(m.waiting, i, i+1)
	m.refund(e.asked - e.need)
}

// refund returns tokens to the bucket, until it is full.
func (m *model) refund(n int64) {
	holds := m.earned(m.now) - m.spent
	room := max(m.capacity-holds, 0)
	m.spent -= min(n, room)
	m.settle()
}

// set changes the rate. The fraction of a token earned so far is kept, rounded
// down to what the new rate earns in whole nanoseconds.
func (m *model) set(p pace, capacity int64) {
	if len(m.waiting) == 0 {
		m.spill()
	}
	_, rest := m.pace.times(max(m.now-m.origin, 0))
	m.base = m.earned(m.now)
	// rest/2^exp tokens, divided by num'/2^exp' tokens a nanosecond.
	back := new(big.Int).Lsh(rest, p.exp)
	back.Div(back, new(big.Int).Lsh(big.NewInt(p.num), m.pace.exp))
	m.origin = m.now - back.Int64()
	m.pace, m.capacity = p, capacity
	m.settle()
}
