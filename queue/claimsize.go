package queue

import (
	"math"
	"time"
)

// claimSize decides how many tasks a dispatcher claims at once. One by one, each
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
type claimSize struct {
	most int           // tasks
	rate float64       // tasks of this dispatcher that end, a second
	soon time.Duration // what counts as soon: longer, if claims take long

	asked time.Time // of the last claim
	ended int       // tasks since then
	size  int       // that it asked for
}

// What is claimed starts within about claimSoonMin, or claimSoonCalls times what a claim
// takes if that is longer, but not more than claimSoonMax.
const (
	claimSizeMax   = 64
	claimSoonMin   = time.Millisecond
	claimSoonCalls = 2
	claimSoonMax   = 50 * time.Millisecond
	// What was more than about claimRateMemory ago counts little.
	claimRateMemory = 10 * time.Millisecond
)

// ask returns how many tasks to claim, when so many slots are free.
func (a *claimSize) ask(now time.Time, free int) int {
	if !a.asked.IsZero() {
		since := max(now.Sub(a.asked), time.Microsecond)
		a.rate += (1 - math.Exp(-since.Seconds()/claimRateMemory.Seconds())) * (float64(a.ended)/since.Seconds() - a.rate)
	}
	a.asked, a.ended = now, 0
	likely := a.rate * max(a.soon, claimSoonMin).Seconds()
	a.size = min(1+max(free, 0)+int(min(likely, claimSizeMax)), max(a.most, 1))
	return a.size
}

// answered notes how many came, and when.
func (a *claimSize) answered(now time.Time, tasks int) {
	took := now.Sub(a.asked)
	a.soon = min(max(claimSoonCalls*took, claimSoonMin), claimSoonMax)
	if tasks < a.size {
		a.size = 0 // it says nothing
	}
}

// started notes that the last task of a claim has started.
func (a *claimSize) started(now time.Time) {
	switch late := now.Sub(a.asked) > a.soon+a.soon/claimSoonCalls; {
	case late:
		a.most = max(a.most/2, 1)
	case a.size >= max(a.most, 1):
		a.most = min(2*max(a.most, 1), claimSizeMax)
	}
}

// failed notes that tasks were claimed in vain.
func (a *claimSize) failed() { a.most = 1 }
