package sched

// pace is how fast the entries of each tier have come to their turn lately. It counts only
// while something waits and the engine is not paused, so idle hours and pauses do not matter,
// and time is in slots, so a change of the limit does not either.
type pace struct {
	at     int64           // of the last reading of the clock
	waited uint8           // a bit for each tier that waited until then
	off    bool            // the engine is paused
	counts [Tiers]progress // since then
	burst  int             // arrivals since the last start
	tiers  [Tiers]window
	all    window         // while anything waited
	came   [Tiers]float64 // in that, entries that were queued
}

// progress is what has happened to the queue of a tier.
type progress struct{ started, arrived int32 }

// window is what has happened lately while a tier had something waiting. After windowLen
// starts all of it counts half.
type window struct {
	time    float64 // in nanoseconds, times the limit
	started float64 // entries of any tier that were started
	passed  float64 // by how many the tier's last entry came nearer to its own, or fell back
}

const (
	windowLen   = 512
	windowBasis = 4  // fewer starts are no basis for an estimate
	guessWeight = 32 // starts that tell as much of a tier as what is known of those above it
	burstLen    = 4  // arrivals that count between two starts, besides one for each slot
)

// basis reports whether an estimate can be based on it.
func (w *window) basis() bool { return w.started >= windowBasis && w.time > 0 }

// add counts half of all that was before if that is much, and reports whether it did.
func (w *window) add(started int32, passed int32) (halved bool) {
	w.started += float64(started)
	w.passed += float64(passed)
	if w.started < windowLen {
		return false
	}
	w.time, w.started, w.passed = w.time/2, w.started/2, w.passed/2
	return true
}

// arrive counts an entry that is queued. Of a flood that comes at once, most are not counted:
// it goes first while it waits, and says nothing of what will come.
func (p *pace) arrive(tier, limit int) {
	if p.burst++; p.burst <= limit+burstLen {
		p.counts[tier].arrived++
	}
}

// start counts an entry that gets a slot. If that was free, because of a pause, a change of the
// limit or a worker that had yet to come, it says nothing of how soon slots come free, nor
// did the entry's arrival of how many wait for that.
func (p *pace) start(tier int, free bool) {
	p.burst = 0
	if free {
		p.counts[tier].arrived--
	} else {
		p.counts[tier].started++
	}
}

// read takes a reading of the clock into account. waits has a bit for each tier of which
// something waits.
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

// spend adds the time since the last reading to the windows of the tiers that wait.
func (p *pace) spend(time float64, waits uint8) {
	for tier := range p.tiers {
		if waits&(1<<tier) != 0 {
			p.tiers[tier].time += time
		}
	}
	p.all.time += time
}

// count adds what has been counted to the windows of the tiers that waited when it happened.
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

// of returns the time from one start to the next while a tier waits, in nanoseconds times the
// limit, and the share of the starts that bring the tier's last entry nearer to its own. The
// time is 0 if there is no basis for it. Where little is known of the tier, the arrivals in those
// above it while anything waits are a guess at its share.
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

// most is the most starts for each slot and nanosecond while some tier waited, 0 if there is no
// basis for it. Where a tier is not at its cap, that is how often a slot comes free.
func (p *pace) most() (most float64) {
	for i := range p.tiers {
		if w := &p.tiers[i]; w.basis() {
			most = max(most, w.started/w.time)
		}
	}
	return most
}
