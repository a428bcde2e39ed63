package stint

// Stats is the state of a scheduler at one moment.
type Stats struct {
	Limit   int `json:"limit"`
	Running int `json:"running"` // slots in use
	Queued  int `json:"queued"`  // entries that wait
	// QueuedBy is Queued by tier, lowest first.
	QueuedBy [Tiers]int `json:"queued_by"`
	// Caps are the effective caps.
	Caps   Caps `json:"caps"`
	PerKey int  `json:"per_key,omitempty"`
	// Blocked is how many submitters wait for room in a bounded queue.
	Blocked int  `json:"blocked,omitempty"`
	Paused  bool `json:"paused,omitempty"`
	Closed  bool `json:"closed,omitempty"`
	// Shared is the state of the shared slots, nil if there are none.
	Shared *Usage `json:"shared,omitempty"`
}

// Stats returns the present state. Running is not kept by tier: a slot's tier
// says when it is given out and is forgotten then.
func (s Scheduler) Stats() Stats {
	c := s.c.made()
	c.lockAll()
	defer c.unlock()
	limit, caps := c.log.Limits()
	st := Stats{
		Limit: limit, Running: c.running(), Queued: c.log.Len(), Caps: capsOf(caps), PerKey: c.log.PerKey(),
		Paused: c.paused != nil, Closed: c.closed,
	}
	for tier := range Tiers {
		st.QueuedBy[tier] = c.log.LenTier(tier)
	}
	if c.door != nil {
		st.Blocked = c.door.Len()
	}
	if c.slots != nil {
		usage := c.slots.Usage()
		st.Shared = &usage
	}
	return st
}
