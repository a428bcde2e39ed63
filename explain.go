package stint

import (
	"slices"
	"time"

	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/internal/sched"
)

// Waiting describes an entry that waits, and why it does.
type Waiting struct {
	Priority Priority  `json:"priority"`
	Key      string    `json:"key,omitempty"`
	Weight   int       `json:"weight"`
	Since    time.Time `json:"since"` // arrival; a little early if many entries arrive at once
	// Ahead is the maximum number of queued entries of its tier and of higher ones that start
	// before this one. Later arrivals are not counted.
	Ahead int `json:"ahead"`
	// Reasons is why the entry does not start, the binding reason first.
	Reasons []Reason `json:"reasons"`
	// Estimate is the expected remaining wait, nil if there is no basis for one.
	Estimate *Estimate `json:"estimate,omitempty"`
}

// Estimate is the expected remaining wait of an entry, with the numbers that it is based on.
//
// It assumes that entries start, for each slot of the present limit, at the recent rate of
// starts while entries waited and the scheduler was not paused, and that the same share of
// starts as recently goes to later arrivals that start before an entry of the tier. Functions
// that were passed to [Go], a [Group] or [Map], and with [Config.Holders] all work that has
// slots, are assumed to run for as long as the last ones did. So the remaining time of running
// functions counts too: it matters most if few entries are ahead and run times vary little.
// There is no estimate during a pause, for an entry whose key is at its limit, and until a few
// functions have ended or a few entries have started after a wait.
type Estimate struct {
	Wait  time.Duration `json:"wait_ns"`
	Rate  float64       `json:"rate"`  // entries that start in a second while something waits
	Ahead int           `json:"ahead"` // entries that go first
}

// Why returns what would keep an entry of this tier, key and weight from
// starting if it arrived now, the binding reason first, or nothing if it would
// start at once. The tier is [Normal] unless At says otherwise. An entry of several slots on
// shared ones, which is refused, has the reason [CodeShared] with its Weight.
func (s Scheduler) Why() []Reason {
	var shared []Reason
	why := s.made().Why(s.ask(s.tier), func() { shared = s.sharedReasons() })
	if s.weight > 1 && s.e.Slots() != nil {
		shared = []Reason{{Code: CodeShared, Weight: int(s.weight)}}
	}
	switch {
	case why.Closed:
		return []Reason{{Code: CodeClosed}}
	case why.Starts:
		return shared
	default:
		return s.reasons(&why.Present, &why.Why, why.Full, shared, heldBy(why.Holders))
	}
}

// Waiting returns all queued entries in the order of arrival, each with the reasons why it
// waits, and then the submitters that wait for room in a bounded queue, in the order of
// their arrival, with the reason [CodeQueueFull] first. An entry that [Future.SetPriority]
// has moved counts as having arrived when it was moved.
//
// It is meant for display: it takes time and memory in proportion to the queue. It copies
// a few hundred entries at a time and releases the scheduler's lock in between. Entries
// that wait during the whole call are in the result. An entry that arrives, starts, leaves
// or is moved meanwhile may be missing, or be shown as it was; and so may a submitter that
// is admitted.
func (s Scheduler) Waiting() (all []Waiting) {
	var shared []Reason
	var now *held
	s.made().Waiting(
		func() { shared = s.sharedReasons() },
		func(n int, present *sched.Present, w *sched.Wait) {
			if all == nil {
				all = make([]Waiting, 0, n)
				now = heldBy(present.Holders)
			}
			all = append(all, s.explain(present, w, shared, now))
		})
	return all
}

// Why explains the wait of a function that is queued. Once it has been called,
// or never will be, there is no wait and no reason.
func (f *Future[T]) Why() (w Waiting, waiting bool) {
	c := f.made()
	s := Scheduler{e: c.Engine()}
	var shared []Reason
	present, wait, waiting := c.Why(func() { shared = s.sharedReasons() })
	if !waiting {
		return Waiting{}, false
	}
	return s.explain(&present, &wait, shared, heldBy(present.Holders)), true
}

// explain describes work that waits.
func (s Scheduler) explain(present *sched.Present, wait *sched.Wait, shared []Reason, now *held) Waiting {
	why := &wait.Why
	w := Waiting{
		Priority: priorityOf(wait.Tier), Key: why.Key, Weight: why.Weight, Since: wait.Since,
		Reasons: s.reasons(present, why, wait.Full, shared, now),
	}
	for _, ahead := range why.Ahead {
		w.Ahead += ahead
	}
	if present.Pause == nil && !why.AtLimit {
		if wait, rate, ok := present.Forecast.Estimate(wait); ok {
			w.Estimate = &Estimate{Wait: wait, Rate: rate, Ahead: w.Ahead}
		}
	}
	return w
}

// reasons converts the reasons of the policy, and adds those that the policy does not know: a
// pause, a bounded queue that has full entries (0 if it has room), shared slots, and the holders
// of slots.
func (s Scheduler) reasons(
	present *sched.Present, why *backlog.Reasons, full int, shared []Reason, now *held,
) []Reason {
	var room [9]Reason // one of each code
	all := room[:0]
	if full > 0 {
		all = append(all, Reason{Code: CodeQueueFull, Limit: s.e.Queue(), Running: full})
	}
	if present.Pause != nil {
		all = append(all, Reason{Code: CodePaused, By: present.Pause.By, Since: present.Pause.Since})
	}
	if why.AtLimit {
		all = append(all, Reason{
			Code: CodeKey, Key: why.Key, Limit: why.PerKey, Running: why.KeyRuns, Held: now.longestOf(why.Key),
		})
	}
	if why.Full {
		r := Reason{Code: CodeMax, Limit: why.Max, Running: present.Running, Held: now.longest()}
		if why.Weight > 1 {
			r.Weight = why.Weight
		}
		all = append(all, r)
	}
	if why.AtCap && why.Cap < why.Max {
		all = append(all, Reason{
			Code: CodeCap, Limit: why.Cap, Running: present.Running, Guard: why.GuardIn, Held: now.longest(),
		})
	}
	if why.Ahead != ([Tiers]int{}) || why.Reserved || present.Resuming > 0 {
		all = append(all, Reason{Code: CodeBehind, Ahead: why.Ahead, Resuming: present.Resuming, Guard: why.GuardIn})
	}
	return slices.Clone(append(all, shared...))
}

// sharedReasons returns why no shared slot can be taken, or nil if one can. It is the last
// reason, which binds only if there is no other.
func (s Scheduler) sharedReasons() []Reason {
	usage := s.usage()
	if usage == nil || usage.Running < usage.Max && usage.Err == "" {
		return nil
	}
	return []Reason{{Code: CodeShared, Limit: usage.Max, Running: usage.Running, By: usage.holderNames()}}
}

// holderNames lists the names of the holders for display.
func (u Usage) holderNames() string {
	if u.Err != "" {
		return u.Err
	}
	text := ""
	for _, h := range u.Holders {
		if h.Slots > 0 {
			text = listed(text, h.Name)
		}
	}
	return text
}
