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
	// Blocked is the number of submitters that wait for room in a bounded queue.
	Blocked int `json:"blocked,omitempty"`
	// Suspended is the number of functions that have suspended their slots: they wait for other
	// work, or to resume. They are in neither Running nor Queued; see [Scheduler].
	Suspended int  `json:"suspended,omitempty"`
	Paused    bool `json:"paused,omitempty"`
	Closed    bool `json:"closed,omitempty"`
	// Shared is the state of the shared slots, nil if there are none.
	Shared *Usage `json:"shared,omitempty"`
}

// Stats returns the present state. Running is not divided by tier: the tier of work
// decides when it gets a slot, and is not recorded after that.
func (s Scheduler) Stats() Stats {
	var shared *Usage
	now := s.made().Stats(func() { shared = s.usage() })
	return Stats{
		Limit: now.Limit, Running: now.Running, Queued: now.Queued, QueuedBy: now.QueuedBy,
		Caps: capsOf(now.Caps), PerKey: now.PerKey, Blocked: now.Blocked, Suspended: now.Suspended,
		Paused: now.Paused, Closed: now.Closed, Shared: shared,
	}
}

// usage is the state of the shared slots, nil if there are none. It is called with the engine's
// lock held.
func (s Scheduler) usage() *Usage {
	slots := s.e.Slots()
	if slots == nil {
		return nil
	}
	usage := slots.(interface{ Usage() Usage }).Usage() // as engineSlots made it
	return &usage
}
