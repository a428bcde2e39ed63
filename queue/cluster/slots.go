package cluster

import (
	"errors"
	"fmt"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster/internal/ledger"
)

// SlotsConfig configures a limit over hosts.
type SlotsConfig struct {
	// Max is the number of slots over all hosts, from 1. If hosts differ, the smallest Max
	// of the hosts that use it at present counts: a lower one holds with the first host that has it,
	// for slots that are taken from then on, and a higher one when the last host with the
	// lower one has gone.
	Max int
}

// Slots is a limit over all nodes, for [stint.Config]: no more than Max functions run at
// once on all hosts. Its methods are for the scheduler, which calls them with its lock held.
//
// The node leases permits from the leader, as many as entries wait, and hands them over
// between its own entries without asking. While no other host waits it keeps permits that
// are free, for about a second. So TryAcquire of a scheduler fails if the node has no free
// permit, and asks for one meanwhile; Acquire waits for it, about one round trip.
//
// Hosts are served by tier, and in a tier by order of arrival. Hosts that always have
// entries of the same tier get equal shares; a share of less than a permit is a turn of 10
// ms. A host without a permit that has waited for a second goes first, whatever its tier.
//
// A host that is cut off from the leader loses its permits 4.5 s after it has last sent a
// report that was confirmed: the contexts of their work end with cause [stint.ErrSlotLost].
// The leader gives them to others half a second later at the earliest, so work that needs
// longer to stop may overlap with other work. The permits of a host that was killed come
// back within 5 s. A change of leader ends no work if the next one leads within about 4 s.
// The reports of the hosts show the next leader which permits they have; those that are
// not in use are granted again 5 s after it has begun to lead, those that a host returns at once.
type Slots struct {
	p    *permits
	name string

	// Guarded by the mu of p.
	account      *ledger.Account
	grants       map[stint.Grant]struct{} // held by the scheduler
	losing       map[stint.Grant]struct{} // lost, and the scheduler does not know it yet
	last         stint.Grant
	notify       func()
	lost         func(stint.Grant, error)
	notification bool         // is about to be made
	usage        ledger.Usage // the last that is known
	max          int
}

var _ stint.Slots = (*Slots)(nil)

// Slots returns a user of the limit of a name, for one scheduler, until the node closes. Its
// errors wrap [queue.ErrInvalid] or [queue.ErrClosed]. It does not wait for the leader.
func (n *Node) Slots(name string, cfg SlotsConfig) (*Slots, error) {
	err := validName(name)
	if cfg.Max < 1 || cfg.Max > ledger.MaxMax {
		err = errors.Join(err, fmt.Errorf("a Max of %d: it can be 1 to %d", cfg.Max, ledger.MaxMax))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: limit %q: %w", queue.ErrInvalid, name, err)
	}
	p := n.permits
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return nil, p.ended
	}
	s := &Slots{
		p: p, name: name, max: cfg.Max, account: ledger.NewAccount(uint64(len(p.slots)+1), name, cfg.Max),
		grants: map[stint.Grant]struct{}{}, losing: map[stint.Grant]struct{}{},
	}
	p.slots = append(p.slots, s)
	p.start()
	return s, nil
}

// nameMax is the length of the name of a limit or a rate, in bytes.
const nameMax = 255

func validName(name string) error {
	if name == "" || len(name) > nameMax {
		return fmt.Errorf("a name has 1 to %d bytes", nameMax)
	}
	return nil
}

// Bind sets the functions that notify the scheduler. It panics if it is called twice.
func (s *Slots) Bind(notify func(), lost func(stint.Grant, error)) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.notify != nil {
		panic("cluster: Slots are for one scheduler; call Node.Slots again for another")
	}
	s.notify, s.lost = notify, lost
}

// TryAcquire takes a permit that the node has. It fails with [stint.ErrNoSlot] if it has
// none, and with [queue.ErrClosed].
func (s *Slots) TryAcquire(stint.Priority) (stint.Grant, error) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return 0, p.ended
	}
	if s.account.Held() > 0 && !p.validLocked(clock.Now()) || !s.account.Take() {
		s.newsLocked()
		return 0, stint.ErrNoSlot
	}
	s.last++
	s.grants[s.last] = struct{}{}
	return s.last, nil
}

// Release releases a permit: for an entry of this node, or for other nodes. It panics if the
// grant is not held; a grant that was lost a moment ago counts as held.
func (s *Slots) Release(grant stint.Grant) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := s.losing[grant]; ok {
		return
	}
	if _, ok := s.grants[grant]; !ok {
		panic(fmt.Sprintf("cluster: release of grant %d, which is not held", grant))
	}
	delete(s.grants, grant)
	s.account.Put()
	s.offerLocked()
	s.newsLocked()
}

// Want sets the highest tier that waits in this node, and the number of waiters.
func (s *Slots) Want(tier stint.Priority, waiting int) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.account.Want(int(tier-stint.Lowest), waiting)
	s.offerLocked()
	s.newsLocked()
}

// Usage returns the nodes that hold permits or wait, as of a moment ago: the leader is asked
// again at each call, and regularly while an entry of this node waits.
func (s *Slots) Usage() stint.Usage {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	s.account.Ask()
	s.newsLocked()
	now := s.usage
	if len(now.Holders) == 0 {
		now = ledger.Usage{Max: s.max, Holders: []ledger.Holder{{Name: p.name, Own: true}}}
	}
	u := stint.Usage{Max: now.Max}
	for _, h := range now.Holders {
		if h.Own {
			h.Used, h.Waiting = s.account.Used(), s.account.Waiting()
		}
		u.Running += h.Used
		u.Waiting += h.Waiting
		u.Holders = append(u.Holders, stint.Holder{Name: h.Name, Slots: h.Used, Waiting: h.Waiting})
	}
	u.Err = p.errLocked()
	return u
}

// newsLocked triggers a report to the leader, if there is something urgent to report.
func (s *Slots) newsLocked() {
	if s.account.Urgent() {
		wake(s.p.news)
	}
}

// offerLocked notifies the scheduler if it waits and there is a permit.
func (s *Slots) offerLocked() {
	if s.account.Waiting() > 0 && s.account.Idle() > 0 {
		s.notifyLocked()
	}
}

// notifyLocked notifies the scheduler soon.
func (s *Slots) notifyLocked() {
	if !s.notification && s.notify != nil {
		s.notification = true
		s.p.laterLocked(s.offer)
	}
}

// offer notifies the scheduler of permits. If it waits and leaves some, because it is at a
// limit of its own, they are for other hosts, and the leader grants no more of them until
// the scheduler asks again.
func (s *Slots) offer() {
	p := s.p
	offered := func() bool {
		return s.account.Waiting() > 0 && s.account.Idle() > 0 && p.validLocked(clock.Now())
	}
	p.mu.Lock()
	s.notification = false
	call := offered() || p.ended != nil && s.account.Waiting() > 0
	p.mu.Unlock()
	if call {
		s.notify()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expireLocked(clock.Now()) // or the scheduler may have left permits because they were about to expire
	if call && offered() && !s.notification {
		s.account.Busy()
	}
	s.newsLocked()
}

// applyLocked applies an order of the ledger.
func (s *Slots) applyLocked(o ledger.Order) {
	before := s.account.Used()
	_, revoked := s.account.Apply(o)
	if revoked && before > 0 {
		s.loseGrantsLocked(errLost)
	}
	s.offerLocked()
}

// loseLocked ends all permits of the node.
func (s *Slots) loseLocked(cause error) {
	s.account.Lose()
	s.loseGrantsLocked(cause)
}

// loseGrantsLocked lets the scheduler know that its permits are lost.
func (s *Slots) loseGrantsLocked(cause error) {
	if len(s.grants) == 0 {
		return
	}
	lost := s.grants
	s.grants = map[stint.Grant]struct{}{}
	for g := range lost {
		s.losing[g] = struct{}{}
	}
	s.p.laterLocked(func() {
		for g := range lost {
			s.lost(g, cause)
		}
		s.p.mu.Lock()
		defer s.p.mu.Unlock()
		for g := range lost {
			delete(s.losing, g)
		}
	})
}
