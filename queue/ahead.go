package queue

import (
	"math"
	"time"
)

// ahead decides how many tasks a dispatcher claims at once. One by one, each
// start pays for a call of the store; but a task that has been claimed and waits
// for a slot keeps others from running it, goes before higher tiers that come
// later, and takes a place under its limits. So a claim asks for no more than is
// likely to start soon: as many as there are free slots, and as many as end in that
// time. Whether that was right is seen when the last one of the claim starts; the
// most that is asked for doubles or is halved by it. (Additive increase and
// multiplicative decrease would be steadier; this one has to follow bursts.)
//
// It starts with one, so a process that dies of its first task takes no others
// along. The dispatcher's mutex guards it.
type ahead struct {
	most int           // tasks
	rate float64       // tasks of this dispatcher that end, a second
	soon time.Duration // what counts as soon: longer, if claims take long

	asked time.Time // of the last claim
	ended int       // tasks since then
	size  int       // that it asked for
}

// What is claimed starts within about aheadSoon, or aheadCalls times what a claim
// takes if that is longer, but not more than aheadLate.
const (
	aheadMost  = 64
	aheadSoon  = time.Millisecond
	aheadCalls = 2
	aheadLate  = 50 * time.Millisecond
	// What was more than about aheadMemory ago counts little.
	aheadMemory = 10 * time.Millisecond
)

// ask returns how many tasks to claim, when so many slots are free.
func (a *ahead) ask(now time.Time, free int) int {
	if !a.asked.IsZero() {
		since := max(now.Sub(a.asked), time.Microsecond)
		a.rate += (1 - math.Exp(-since.Seconds()/aheadMemory.Seconds())) * (float64(a.ended)/since.Seconds() - a.rate)
	}
	a.asked, a.ended = now, 0
	likely := a.rate * max(a.soon, aheadSoon).Seconds()
	a.size = min(1+max(free, 0)+int(min(likely, aheadMost)), max(a.most, 1))
	return a.size
}

// answered notes how many came, and when.
func (a *ahead) answered(now time.Time, tasks int) {
	took := now.Sub(a.asked)
	a.soon = min(max(aheadCalls*took, aheadSoon), aheadLate)
	if tasks < a.size {
		a.size = 0 // it says nothing
	}
}

// started notes that the last task of a claim has started.
func (a *ahead) started(now time.Time) {
	switch late := now.Sub(a.asked) > a.soon+a.soon/aheadCalls; {
	case late:
		a.most = max(a.most/2, 1)
	case a.size >= max(a.most, 1):
		a.most = min(2*max(a.most, 1), aheadMost)
	}
}

// failed notes that tasks were claimed in vain.
func (a *ahead) failed() { a.most = 1 }
