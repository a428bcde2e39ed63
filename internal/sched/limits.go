package sched

import "time"

// Limits are the bounds of the work that runs in an engine: its slots, the caps of the
// tiers, the entries of each key, and a pause, during which nothing starts. They may change
// at any time. The slots and the caps are the Bounds of the policy. All methods are safe for
// concurrent use.
type Limits struct {
	e *Engine // immutable

	// Guarded by the engine's lock. The policy and the gate have the numbers.
	paused  *Pause        // nil if the engine is not paused
	resized chan struct{} // see Resized; nil if nothing waits for that
}

// Pause describes a pause of an engine: By is the text that its caller gave.
type Pause struct {
	By    string
	Since time.Time
}

// change applies a change of the limits, and starts what it allows.
func (l *Limits) change(apply func()) {
	e := l.e
	e.lock()
	e.queue.read()
	apply()
	e.queue.pace.off = l.paused != nil
	e.queue.look()
	e.gate.publish(e.queue.policy.Bounds())
	e.dispatchAndUnlock(0, false)
}

// SetCaps changes the caps of the tiers.
func (l *Limits) SetCaps(caps [Tiers]int) {
	l.change(func() { l.e.queue.log().Bounds().SetCaps(caps) })
}

// SetPerKey changes how many entries of one key run at once.
func (l *Limits) SetPerKey(n int) { l.change(func() { l.e.queue.log().Keys().SetPerKey(n) }) }

// Pause keeps work from starting until Resume.
func (l *Limits) Pause(by string) {
	l.change(func() {
		if l.paused == nil {
			l.paused = &Pause{by, now()}
		}
	})
}

// Resume ends a pause.
func (l *Limits) Resume() { l.change(func() { l.paused = nil }) }

// Resize changes the number of slots. It refuses waiting work that can never run under the
// new one.
func (l *Limits) Resize(slots int) {
	e := l.e
	l.change(func() {
		e.queue.log().Bounds().SetMax(slots)
		if slots == 0 || slots < e.queue.most { // else nothing is refused, which takes long to find out in a long queue
			e.refuseAll(e.tooMuch)
			e.blocked.refuse(e.tooMuch)
		}
		if l.resized != nil {
			close(l.resized)
			l.resized = nil
		}
	})
}

// Resized returns a channel that the next call of Resize closes. That call has set the limit when
// another call of Resized returns, because both take the lock.
func (l *Limits) Resized() <-chan struct{} {
	l.e.lock()
	defer l.e.unlock()
	if l.resized == nil {
		l.resized = make(chan struct{})
	}
	return l.resized
}
