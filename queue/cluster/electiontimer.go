package cluster

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

const (
	// checkFirst is the pause before a node looks again whether it can lead, after a sign
	// that the leader has gone. The pauses double up to checkLast.
	checkFirst = 50 * time.Millisecond
	checkLast  = time.Second
	// looksFree is the number of nodes from which on a node looks less often whether the lease
	// of a leader that answers has ended, by up to lookEach for each node above that number. So
	// the leader's row is read some 50 times a second, however many nodes there are.
	looksFree = 50
	lookEach  = 40 * time.Millisecond
	// invitedFor is how long a node that was invited tries to lead at once.
	invitedFor = 3 * time.Second
)

// electionTimer decides when a follower looks whether it can lead.
type electionTimer struct {
	signs chan struct{} // receives when the leader may have changed
	pause time.Duration // after the next sign; owned by the loop that calls await and led
	nodes atomic.Int64  // that the leader knew when it last answered

	begun     time.Time    // the zero of the times below, which the system clock does not move
	invited   atomic.Int64 // until when another node lets this one lead, in ns
	countedAt atomic.Int64 // when the leader last answered, in ns
}

func newElectionTimer() *electionTimer {
	return &electionTimer{signs: make(chan struct{}, 1), begun: clock.Now()}
}

// now is the time in ns since the timer was made.
func (t *electionTimer) now() int64 { return int64(clock.Now().Sub(t.begun)) }

// suspect makes the node look whether the leader has changed.
func (t *electionTimer) suspect() {
	select {
	case t.signs <- struct{}{}:
	default:
	}
}

// invite makes the node try to lead for a while, because another node lets it.
func (t *electionTimer) invite() {
	t.invited.Store(t.now() + int64(invitedFor))
	t.suspect()
}

// isInvited reports whether another node has just let this one lead.
func (t *electionTimer) isInvited() bool { return t.now() < t.invited.Load() }

// answered records that the leader has answered, and how many nodes it knows.
func (t *electionTimer) answered(nodes int) {
	t.nodes.Store(int64(nodes))
	t.countedAt.Store(t.now())
}

// led records that a node leads: the next sign is the first one that it has gone.
func (t *electionTimer) led() { t.pause = 0 }

// await returns when the lease of the leader may have ended, or there are signs that the leader has
// gone, or ctx ends; left is the rest of the lease. After such signs it returns at growing intervals:
// the leader gives its lease up a moment after it has stopped answering, and that of a killed one has
// to end.
func (t *electionTimer) await(ctx context.Context, left time.Duration) {
	const margin = 10 * time.Millisecond // the next attempt is a moment after the end
	wait := left + margin + t.later()
	if t.isInvited() {
		wait = min(wait, checkFirst)
	}
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	select {
	case <-deadline.C:
		t.pause = 0
	case <-ctx.Done():
	case <-t.signs:
		if t.isInvited() {
			return
		}
		t.pause = min(max(2*t.pause, checkFirst), checkLast)
		sleep(ctx, min(t.pause, left+margin))
	}
}

// later returns how much later than at the end of its lease this node looks for another
// leader. It is 0 unless the leader has answered lately and knows many nodes; a leader that
// stops answering is noticed by that.
func (t *electionTimer) later() time.Duration {
	above := t.nodes.Load() - looksFree
	if above <= 0 || t.now()-t.countedAt.Load() > int64(2*enrollEvery) {
		return 0
	}
	return time.Duration(rand.Int64N(above * int64(lookEach))) //nolint:gosec // no secret
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
