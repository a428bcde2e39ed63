package sched

// pace is how fast the entries of each tier came to their turn lately. It counts only
// while something waits and the engine is not paused, so idle hours and pauses do not
// matter; and time is in slots, so a change of the limit does not either.
type pace struct {
	at     int64           // time of the last reading of the clock
	waited uint8           // a bit for each tier that waited until at
	off    bool            // the engine is paused
	counts [Tiers]progress // since at
	burst  int             // arrivals since the last start
	tiers  [Tiers]window
	all    window         // while anything waited
	came   [Tiers]float64 // entries queued in the window all
}

// progress counts what has happened to the queue of a tier.
type progress struct{ started, arrived int32 }

// window is what happened lately while a tier had something waiting. After windowLen
// starts all of it counts half.
type window struct {
	time    float64 // in nanoseconds, times the limit
	started float64 // entries of any tier that were started
	passed  float64 // by how many starts the tier's last entry came nearer to its own, or fell back
}

const (
	windowLen   = 512
	windowBasis = 4  // starts; fewer are too few for an estimate
	guessWeight = 32 // starts that weigh as much as the guess from the tiers above
	burstLen    = 4  // arrivals that count between two starts, in addition to one per slot
)

// basis reports whether the window is a basis for an estimate.
func (w *window) basis() bool { return w.started >= windowBasis && w.time > 0 }

// add adds to the window, halves it if it is full, and reports whether it has halved it.
func (w *window) add(started int32, passed int32) (halved bool) {
	w.started += float64(started)
	w.passed += float64(passed)
	if w.started < windowLen {
		return false
	}
	w.time, w.started, w.passed = w.time/2, w.started/2, w.passed/2
	return true
}

// arrive counts an entry that is queued. Most of a flood is not counted: it goes first
// while it waits, but says nothing about later arrivals.
func (p *pace) arrive(tier, limit int) {
	if p.burst++; p.burst <= limit+burstLen {
		p.counts[tier].arrived++
	}
}

// start counts an entry that gets a slot. If the slot was free, because of a pause, a
// change of the limit or a worker on its way, the start says nothing about how soon slots
// come free, nor does the entry's arrival about how many entries wait.
func (p *pace) start(tier int, free bool) {
	p.burst = 0
	if free {
		p.counts[tier].arrived--
	} else {
		p.counts[tier].started++
	}
}

// read records a reading of the clock, in nanoseconds. waits has a bit for each tier with
// something waiting.
func (p *pace) read(at int64, waits uint8, limit int) {
	spent := float64(at-p.at) * float64(limit)
	if p.off {
		spent = 0
	}
	if waits != 0 {
		p.spend(spent, waits)
	}
	if p.waited != 0 {
		p.count()
	}
	p.at, p.waited, p.counts = at, waits, [Tiers]progress{}
}

// spend adds the time since the last reading to the windows of the waiting tiers.
func (p *pace) spend(time float64, waits uint8) {
	for tier := range p.tiers {
		if waits&(1<<tier) != 0 {
			p.tiers[tier].time += time
		}
	}
	p.all.time += time
}

// count adds the counts to the windows of the tiers that waited meanwhile.
func (p *pace) count() {
	var started, above, came int32
	for tier, c := range p.counts {
		started += c.started
		p.came[tier] += float64(c.arrived)
	}
	if p.all.add(started, 0) {
		for tier := range p.came {
			p.came[tier] /= 2
		}
	}
	for tier := Tiers - 1; tier >= 0; tier-- {
		above += p.counts[tier].started
		if p.waited&(1<<tier) != 0 {
			p.tiers[tier].add(started, above-came)
		}
		came += p.counts[tier].arrived
	}
}

// of returns the time from one start to the next while a tier waits, in nanoseconds times
// the limit, and the share of starts that bring the tier's last entry nearer to its own.
// The time is 0 if there is no basis for it. If little is known about the tier, its share
// is estimated from the arrivals in the tiers above while anything waits.
func (p *pace) of(tier int) (every, share float64) {
	w := &p.tiers[tier]
	if !p.all.basis() {
		return 0, 1
	}
	above := 0.0
	for _, came := range p.came[tier+1:] {
		above += came
	}
	share = min(max(0, 1-above/(p.all.started+guessWeight)), 1)
	if !w.basis() {
		return p.all.time / p.all.started, share
	}
	return w.time / w.started, min((w.passed+guessWeight*share)/(w.started+guessWeight), 1)
}

// most returns the highest rate of starts, per slot and nanosecond, while some tier
// waited, or 0 if there is no basis for it. For a tier below its cap, that is how often a
// slot comes free.
func (p *pace) most() (most float64) {
	for i := range p.tiers {
		if w := &p.tiers[i]; w.basis() {
			most = max(most, w.started/w.time)
		}
	}
	return most
}
