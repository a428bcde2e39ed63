package queue

import (
	"math"
	"time"
)

// claimSize decides how many tasks a dispatcher claims at once. A claim of one task costs
// a call of the store for each start. But a claimed task that waits for a slot cannot run
// elsewhere, starts before later tasks of higher tiers, and counts against limits. So a
// claim asks for the tasks that will probably start soon: the free slots, and the tasks
// that will end in that time. The start of the last task of a claim shows whether that
// was right, and doubles or halves the largest claim. (Additive increase and
// multiplicative decrease would be steadier, but this size has to follow bursts.)
//
// The first claim asks for one task, so a process that crashes on its first task takes no
// others along. The dispatcher's mutex guards the fields.
type claimSize struct {
	most int           // the largest claim, in tasks
	rate float64       // tasks of this dispatcher that end per second
	soon time.Duration // the time in which claimed tasks should start

	asked time.Time // when the last claim began
	ended int       // the number of tasks that have ended since then
	size  int       // the size of the last claim; 0 if its result does not count
}

// Claimed tasks should start within claimSoonMin, or within claimSoonCalls times the
// duration of a claim if that is longer, up to claimSoonMax.
const (
	claimSizeMax   = 64
	claimSoonMin   = time.Millisecond
	claimSoonCalls = 2
	claimSoonMax   = 50 * time.Millisecond
	// The rate is an exponentially weighted average; claimRateMemory is its time
	// constant.
	claimRateMemory = 10 * time.Millisecond
)

// ask returns how many tasks to claim when free slots are free.
func (s *claimSize) ask(now time.Time, free int) int {
	if !s.asked.IsZero() {
		since := max(now.Sub(s.asked), time.Microsecond)
		s.rate += (1 - math.Exp(-since.Seconds()/claimRateMemory.Seconds())) * (float64(s.ended)/since.Seconds() - s.rate)
	}
	s.asked, s.ended = now, 0
	likely := s.rate * max(s.soon, claimSoonMin).Seconds()
	s.size = min(1+max(free, 0)+int(min(likely, claimSizeMax)), max(s.most, 1))
	return s.size
}

// answered records the number of tasks of a claim.
func (s *claimSize) answered(now time.Time, tasks int) {
	took := now.Sub(s.asked)
	s.soon = min(max(claimSoonCalls*took, claimSoonMin), claimSoonMax)
	if tasks < s.size {
		s.size = 0 // the claim found all there are, so its size proves nothing
	}
}

// started records that the last task of a claim has started.
func (s *claimSize) started(now time.Time) {
	switch late := now.Sub(s.asked) > s.soon+s.soon/claimSoonCalls; {
	case late:
		s.most = max(s.most/2, 1)
	case s.size >= max(s.most, 1):
		s.most = min(2*max(s.most, 1), claimSizeMax)
	}
}

// failed records that claimed tasks could not start.
func (s *claimSize) failed() { s.most = 1 }
