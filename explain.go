package stint

import (
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
	c, tier := s.c, s.tier.index()
	c.lockAll()
	defer c.unlock()
	running := c.running()
	if c.closed {
		return []Reason{{Code: CodeClosed}}
	}
	if c.paused == nil && len(c.resumes) == 0 && c.log.Admits(tier, s.key, int(s.weight), running) {
		return c.sharedReasons(nil)
	}
	reasons := c.reasons(c.log.WhyNot(tier, s.key, int(s.weight), running), running)
	if c.full() {
		full := Reason{Code: CodeQueueFull, Limit: c.cfg.Queue, Running: c.log.Len()}
		reasons = append([]Reason{full}, reasons...)
	}
	return reasons
}

// Waiting returns everything that is queued, in the order of arrival, with the
// reasons. It is for people: it takes time in proportion to the queue, and
// others wait meanwhile.
func (s Scheduler) Waiting() []Waiting {
	c := s.c
	c.lockAll()
	defer c.unlock()
	entries := c.log.Entries()
	all := make([]Waiting, len(entries))
	for i, e := range entries {
		all[i] = c.explain(e)
	}
	return all
}

// Why explains the wait of a function that is queued. Once it has been called,
// or never will be, there is no wait and no reason.
func (f *Future[T]) Why() (w Waiting, waiting bool) {
	c := f.task.c
	c.lockAll()
	defer c.unlock()
	if e := f.queued(); e != nil {
		return c.explain(e), true
	}
	return Waiting{}, false
}

// explain describes a queued entry. The lock is held.
func (c *core) explain(e *entry) Waiting {
	running := c.running()
	why := c.log.Why(e, running)
	w := Waiting{
		Priority: priorityOf(e.Tier()), Key: e.Key(), Weight: e.Weight(),
		Since:   c.born.Add(time.Duration(e.Value.since)),
		Reasons: c.reasons(why, running),
	}
	for _, ahead := range why.Ahead {
		w.Ahead += ahead
	}
	at := int64(now().Sub(c.born))
	if rate := c.clock.rate(at); rate > 0 && c.paused == nil && !why.AtLimit {
		wait := time.Duration(float64(w.Ahead+1) / rate * float64(time.Second))
		w.Estimate = &Estimate{Wait: wait, Rate: rate, Ahead: w.Ahead}
	}
	return w
}

// reasons words what the policy says, with what the policy does not know.
func (c *core) reasons(why backlog.Reasons, running int) []Reason {
	var all []Reason
	if c.paused != nil {
		all = append(all, Reason{Code: CodePaused, By: c.paused.by, Since: c.paused.since})
	}
	if why.AtLimit {
		all = append(all, Reason{Code: CodeKey, Key: why.Key, Limit: why.PerKey, Running: why.KeyRuns})
	}
	if why.Full {
		r := Reason{Code: CodeMax, Limit: why.Max, Running: running}
		if why.Weight > 1 {
			r.Weight = why.Weight
		}
		all = append(all, r)
	}
	if why.AtCap && why.Cap < why.Max {
		all = append(all, Reason{Code: CodeCap, Limit: why.Cap, Running: running, Guard: why.GuardIn})
	}
	if why.Ahead != ([Tiers]int{}) || why.Reserved {
		all = append(all, Reason{Code: CodeBehind, Ahead: why.Ahead, Guard: why.GuardIn})
	}
	return c.sharedReasons(all)
}

// sharedReasons adds the reason that lies with shared slots: it binds if
// nothing else does.
func (c *core) sharedReasons(all []Reason) []Reason {
	if c.slots == nil {
		return all
	}
	usage := c.slots.Usage()
	if usage.Running < usage.Max && usage.Err == "" {
		return all
	}
	shared := Reason{Code: CodeShared, Limit: usage.Max, Running: usage.Running, By: usage.who()}
	return append(all, shared)
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
