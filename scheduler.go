package stint

import (
	"context"

	"github.com/stintgo/stint/internal/sched"
)

// Scheduler admits work to a limited number of slots.
//
// It is a small value, like a slice: copies share the same slots, and At, Key and Weight
// return copies that ask for slots with another tier, key or weight. They cost nothing.
// The methods of the zero Scheduler panic; make one with [New]. All methods are safe for
// concurrent use.
//
// # Order
//
// Work waits in seven tiers. In a tier each key has a queue, first in, first out, and the
// keys take turns in proportion to their shares. A slot that comes free goes to the
// highest tier that waits and is below its cap. A turn is a start of work that has waited,
// or a finish after which the caps allow no start. Every eighth turn belongs to one tier,
// the seven in rotation: it starts the tier's first entry past caps, but not past the
// limit. So an entry with n entries before it in its tier starts after at most 56·(n+1)
// turns, whatever arrives in higher tiers. The n entries can include later arrivals of
// other keys whose turn comes first, but no stream of arrivals keeps an entry waiting for
// ever.
//
// # Nesting
//
// A function that runs on a slot may use the scheduler itself, with the context that it
// received. While the function waits in [Run], [Future.Wait], [Group.Wait] or a range
// over [Map], its slot is suspended: other work may have it. The function gets a slot
// again before it continues, ahead of all queued entries, but not before the work that has
// got the slot meanwhile ends. So these waits never deadlock on one scheduler, whatever
// its limit.
//
// With several schedulers, a function that waits suspends the slots of all schedulers
// that it runs on. But a call of Run on one scheduler within Run on another holds both,
// so nest such calls in one order, as you would lock mutexes. Slots that Acquire has taken
// are not suspended: two nested Acquires under a limit of 1 wait for ever. A function is
// counted as a whole: while one of its goroutines waits, its other goroutines compute
// without a slot.
type Scheduler struct {
	e      *sched.Engine
	key    string
	weight int32
	tier   Priority
	tiered bool // tier was set by At; otherwise it comes from the context
}

// New returns a scheduler with limit slots, from 0 to [MaxSlots]. It panics if the
// configuration is not valid; see [Config.Validate]. A scheduler needs no closing: an
// idle one has no goroutine, and is garbage collected like any value.
//
// Like a channel, a scheduler that is used in a bubble of testing/synctest belongs to
// that bubble: make one for each bubble, not one for the package.
func New(limit int, cfg Config) Scheduler {
	if err := cfg.Validate(limit); err != nil {
		panic(err)
	}
	return Scheduler{e: sched.New(cfg.engine(limit)), weight: 1}
}

// At returns the scheduler for work of tier p, whatever the context says. The tier
// applies to the start of the work alone: the function receives the priority of its
// context, which also applies to what it starts itself. [WithPriority] sets both. At
// panics if p is not a tier.
func (s Scheduler) At(p Priority) Scheduler {
	s.made()
	s.tier, s.tiered = p.mustValid(), true
	return s
}

// Key returns the scheduler for work on behalf of key. Work with an empty key has no
// limit per key, and a share of 1 beside the keys.
func (s Scheduler) Key(key string) Scheduler {
	s.made()
	s.key = key
	return s
}

// Weight returns the scheduler for work that needs n slots at once. It panics
// if n is less than 1 or more than [MaxSlots].
func (s Scheduler) Weight(n int) Scheduler {
	s.made()
	if n < 1 || n > MaxSlots {
		panic("stint: weight must be from 1 to MaxSlots")
	}
	s.weight = int32(n)
	return s
}

// made returns the engine, and panics if there is none because the scheduler was not made
// with [New]. The paths without a lock need no check, since a weight of 1 comes from New
// or [Scheduler.Weight].
func (s *Scheduler) made() *sched.Engine {
	if s.e == nil {
		panic("stint: zero Scheduler: make one with New")
	}
	return s.e
}

// ask returns what the engine needs to know of work of a tier.
func (s *Scheduler) ask(tier Priority) sched.Ask {
	return sched.Ask{Key: s.key, Weight: s.weight, Tier: int8(tier.index())}
}

// tierFor returns the tier of a call. It returns no index: with the conversion it would be too
// large for the compiler to inline, and Acquire of a free slot would take an eighth longer.
func (s *Scheduler) tierFor(ctx context.Context) Priority {
	if s.tiered {
		return s.tier
	}
	return PriorityFrom(ctx)
}

// Acquire waits for a slot, or for as many as the weight, and takes them. The permit
// releases them.
//
// If it gets no slot, it returns an error: the context's cause if the context ends first
// or has ended already, [ErrClosed], [ErrQueueFull], [ErrTooHeavy], [ErrNoCapacity],
// [ErrCleared], or the error of the shared slots.
func (s Scheduler) Acquire(ctx context.Context) (Permit, error) {
	if ctx.Err() != nil {
		s.made()
		return Permit{}, context.Cause(ctx)
	}
	tier := s.tierFor(ctx)
	if s.weight == 1 && s.key == "" && s.e.TryFast(tier.index()) {
		return Permit{s.e.One()}, nil
	}
	p, err := s.made().Take(ctx, s.ask(tier))
	return Permit{p}, err
}

// TryAcquire takes a slot, or as many as the weight, if they are free and no waiting entry
// goes first, and reports whether it did. If the weight is above the limit, it reports
// false. It never blocks. It reads only the priority of ctx, even if ctx has ended.
func (s Scheduler) TryAcquire(ctx context.Context) (Permit, bool) {
	tier := s.tierFor(ctx)
	if s.weight == 1 && s.key == "" && s.e.TryFast(tier.index()) {
		return Permit{s.e.One()}, true
	}
	p, ok := s.made().TryTake(s.ask(tier))
	return Permit{p}, ok
}

// Resize changes the limit. Raising it starts what waits; lowering it lets what runs
// finish. Entries that are heavier than the new limit get [ErrTooHeavy], and with a limit
// of 0 all entries get [ErrNoCapacity]. It panics if limit is negative or above
// [MaxSlots].
func (s Scheduler) Resize(limit int) {
	if err := inRange("limit", limit); err != nil {
		panic(err)
	}
	s.made().Limits().Resize(limit)
}

// SetCaps changes the caps of the tiers. It panics if one is negative, above [MaxSlots], or
// less than the cap of a lower tier; see [Caps].
func (s Scheduler) SetCaps(caps Caps) {
	if err := caps.validate(); err != nil {
		panic(err)
	}
	s.made().Limits().SetCaps(caps.tiers())
}

// SetPerKey changes how many entries of one key run at once; 0 means no limit.
// It panics if n is negative or above [MaxSlots].
func (s Scheduler) SetPerKey(n int) {
	if err := inRange("PerKey", n); err != nil {
		panic(err)
	}
	s.made().Limits().SetPerKey(n)
}

// Pause keeps work from starting until Resume, including work that running functions
// submit; those functions continue until they wait for such work. A nested [Run] is a part
// of its caller: it starts if it can run on its caller's slots. by is for display, and
// says what paused the scheduler and why; [Scheduler.Why] returns it. A second Pause
// changes nothing, and one Resume ends both.
func (s Scheduler) Pause(by string) {
	s.made().Limits().Pause(by)
}

// Resume ends a pause.
func (s Scheduler) Resume() {
	s.made().Limits().Resume()
}

// Clear removes everything from the queue and returns the number of removed entries. Each
// gets an error that wraps [ErrCleared]. Submitters that wait for room in a bounded queue are
// not removed: they get the room. Clear returns after the teardowns of the removed functions.
func (s Scheduler) Clear() int { return s.made().Clear() }
