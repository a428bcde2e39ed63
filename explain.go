package stint

import (
	"slices"
	"time"

	"github.com/stintgo/stint/internal/backlog"
)

// Waiting is one entry that waits, and why.
type Waiting struct {
	Priority Priority  `json:"priority"`
	Key      string    `json:"key,omitempty"`
	Weight   int       `json:"weight"`
	Since    time.Time `json:"since"` // a little early for one of many that arrive at once
	// Ahead is how many entries go first, at most.
	Ahead int `json:"ahead"`
	// Reasons is what keeps the entry from starting, the binding one first.
	Reasons []Reason `json:"reasons"`
	// Estimate is how long it will still wait, nil if there is nothing to go by.
	Estimate *Estimate `json:"estimate,omitempty"`
}

// Estimate is a guess at a wait, with what it is based on.
type Estimate struct {
	Wait  time.Duration `json:"wait_ns"`
	Rate  float64       `json:"rate"`  // entries that started lately, a second
	Ahead int           `json:"ahead"` // entries that go first
}

// Why returns what would keep an entry of this tier, key and weight from
// starting if it arrived now, the binding reason first, or nothing if it would
// start at once. The tier is [Normal] unless At says otherwise.
func (s Scheduler) Why() []Reason {
	c, tier := s.c.made(), s.tier.index()
	c.lockAll()
	defer c.unlock()
	if c.closed {
		return []Reason{{Code: CodeClosed}}
	}
	present := c.circumstances()
	if c.paused == nil && len(c.resumes) == 0 && c.log.Admits(tier, s.key, int(s.weight), present.running) {
		return present.shared
	}
	why := c.log.WhyNot(tier, s.key, int(s.weight), present.running)
	if c.full() {
		return present.reasons(&why, c.queueFull())
	}
	return present.reasons(&why)
}

func (c *core) queueFull() Reason {
	return Reason{Code: CodeQueueFull, Limit: c.cfg.Queue, Running: c.log.Len()}
}

// Waiting returns everything that is queued, in the order of arrival, with the
// reasons; and then the submitters that wait for room in a bounded queue, in the
// order of their arrival, with the reason [CodeQueueFull] first.
//
// It is for people: it takes time and memory in proportion to the queue. It looks at
// a few hundred entries at a time, and others use the scheduler in between. What
// waits all the time is in the answer, and what arrives, starts or leaves meanwhile
// may be missing, or be shown as it was; so may a submitter that is let in.
func (s Scheduler) Waiting() []Waiting {
	c := s.c.made()
	c.drawPosted()
	queued := backlog.Scan(c.log, coreLock{c}, func(e *entry) int64 { return e.Value.since })
	c.lock()
	present, door := c.circumstances(), c.door
	c.unlock()
	all := make([]Waiting, 0, queued.Len())
	for p := range queued.All(present.running) {
		all = append(all, present.explain(p.Value, p.Tier, &p.Reasons))
	}
	if door == nil {
		return all
	}
	return c.blocked(all, &present)
}

// submitter is one that waits for room in a bounded queue: since when, and what
// would keep its job from starting if there were room.
type submitter struct {
	since int64
	why   backlog.Reasons
}

// blocked appends the submitters that wait for room.
func (c *core) blocked(all []Waiting, present *circumstances) []Waiting {
	var full Reason
	blocked := backlog.Scan(c.door, coreLock{c}, func(e *entry) submitter {
		full = c.queueFull()
		v := &e.Value
		return submitter{v.since, c.log.WhyNot(int(v.tier), v.keyName(), int(v.weight), c.running())}
	})
	for p := range blocked.All(0) {
		why := &p.Value.why
		for tier, ahead := range p.Reasons.Ahead {
			why.Ahead[tier] += ahead
		}
		all = append(all, present.explain(p.Value.since, p.Tier, why, full))
	}
	return all
}

// coreLock is the lock of a core as a [sync.Locker].
type coreLock struct{ c *core }

func (l coreLock) Lock() { l.c.lock() }

func (l coreLock) Unlock() { l.c.unlock() }

// Why explains the wait of a function that is queued. Once it has been called,
// or never will be, there is no wait and no reason.
func (f *Future[T]) Why() (w Waiting, waiting bool) {
	c := f.task.c
	c.lockAll()
	defer c.unlock()
	if e := f.queued(); e != nil {
		present := c.circumstances()
		why := c.log.Why(e, present.running)
		return present.explain(e.Value.since, e.Tier(), &why), true
	}
	return Waiting{}, false
}

// circumstances is what explains a wait besides the policy, at one moment.
type circumstances struct {
	born    time.Time
	running int
	paused  *pause
	rate    float64  // entries that started lately, a second
	shared  []Reason // that lies with shared slots
}

// circumstances returns the present ones. The lock is held.
func (c *core) circumstances() circumstances {
	return circumstances{
		born: c.born, running: c.running(), paused: c.paused, rate: c.clock.rate(int64(now().Sub(c.born))),
		shared: c.sharedReasons(),
	}
}

// explain describes an entry that waits, and has done so since a time of the core's
// clock. first are the reasons that bind before all others.
func (present *circumstances) explain(since int64, tier int, why *backlog.Reasons, first ...Reason) Waiting {
	w := Waiting{
		Priority: priorityOf(tier), Key: why.Key, Weight: why.Weight,
		Since:   present.born.Add(time.Duration(since)),
		Reasons: present.reasons(why, first...),
	}
	for _, ahead := range why.Ahead {
		w.Ahead += ahead
	}
	if present.rate > 0 && present.paused == nil && !why.AtLimit {
		wait := time.Duration(float64(w.Ahead+1) / present.rate * float64(time.Second))
		w.Estimate = &Estimate{Wait: wait, Rate: present.rate, Ahead: w.Ahead}
	}
	return w
}

// reasons words what the policy says, with what the policy does not know.
func (present *circumstances) reasons(why *backlog.Reasons, first ...Reason) []Reason {
	var room [7]Reason // one of each code
	all := append(room[:0], first...)
	if present.paused != nil {
		all = append(all, Reason{Code: CodePaused, By: present.paused.by, Since: present.paused.since})
	}
	if why.AtLimit {
		all = append(all, Reason{Code: CodeKey, Key: why.Key, Limit: why.PerKey, Running: why.KeyRuns})
	}
	if why.Full {
		r := Reason{Code: CodeMax, Limit: why.Max, Running: present.running}
		if why.Weight > 1 {
			r.Weight = why.Weight
		}
		all = append(all, r)
	}
	if why.AtCap && why.Cap < why.Max {
		all = append(all, Reason{Code: CodeCap, Limit: why.Cap, Running: present.running, Guard: why.GuardIn})
	}
	if why.Ahead != ([Tiers]int{}) || why.Reserved {
		all = append(all, Reason{Code: CodeBehind, Ahead: why.Ahead, Guard: why.GuardIn})
	}
	return slices.Clone(append(all, present.shared...))
}

// sharedReasons returns the reason that lies with shared slots, if there is one: it
// binds if nothing else does.
func (c *core) sharedReasons() []Reason {
	if c.slots == nil {
		return nil
	}
	usage := c.slots.Usage()
	if usage.Running < usage.Max && usage.Err == "" {
		return nil
	}
	return []Reason{{Code: CodeShared, Limit: usage.Max, Running: usage.Running, By: usage.who()}}
}

// who names the holders for people.
func (u Usage) who() string {
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
