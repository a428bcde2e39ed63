package shm

import (
	"runtime"
	"time"

	"github.com/stintgo/stint/shm/internal/arena"
)

// One goroutine of the process, the watcher, sleeps until slots are granted to it, or
// its turn at a bucket comes, and tells who waits. It is there while somebody waits,
// and for a period longer.
//
// Of all processes that wait one leads: each period it looks for slots of the dead,
// and it has the doorbells. That is the first of them in the table, and whoever finds
// that nobody has done it. The others look at longer intervals whether it is done, so
// that many who wait for long cost little.

// watch is what the watcher and those who wait have in common.
type watch struct {
	on     bool          // there is a watcher
	ended  chan struct{} // closed when the last one there was has ended
	due    int64         // when it looks again, if nobody rings
	waited int64         // when somebody was last seen to wait
	heard  uint64        // the bell, when it was last listened to

	swept int64  // when the dead were last looked for
	leads bool   // nobody else did it then
	hung  bool   // there are doorbells
	joins uint64 // when they were hung
}

const (
	// period is how often who leads looks for slots of the dead.
	period = 10 * time.Millisecond

	// paceMax is how many periods a process sleeps at most that does not lead.
	paceMax = 8

	// doorbellAfter is how long somebody has waited before doorbells are hung up:
	// most waits are shorter.
	doorbellAfter = time.Millisecond
)

// sweepLocked looks for slots of the dead, and for grants that nobody takes, if
// that was not done lately; and for the former whenever somebody may have died.
func (r *Region) sweepLocked() {
	if r.rung.Swap(false) {
		r.member.Reap()
	}
	if now := arena.Now(); now-r.watch.swept >= int64(period) {
		r.watch.swept = now
		r.watch.leads = r.member.Sweep(now, int64(period))
		for _, b := range r.buckets {
			r.member.Overtake(b.index, b.holds())
		}
	}
}

// watchLocked sees to it that there is a watcher. began says that somebody waits now
// where nobody did: soon there are to be doorbells for all who have the region open.
func (r *Region) watchLocked(began bool) {
	w := &r.watch
	if w.on && (!began || w.hung && w.joins == r.member.Joins()) {
		return
	}
	switch due := arena.Now() + int64(doorbellAfter); {
	case !w.on:
		before := w.ended
		w.on, w.ended, w.due = true, make(chan struct{}), due
		go r.watchOver(before, w.ended)
	case due < w.due:
		w.due = due
		r.member.Ring()
	}
}

// watchOver is the watcher. It ends after the one before it.
func (r *Region) watchOver(before <-chan struct{}, ended chan<- struct{}) {
	bells := doorbells{region: r}
	defer func() {
		bells.takeDown()
		if before != nil {
			<-before
		}
		close(ended)
	}()
	for {
		bell := r.member.Bell()
		sight := r.look()
		if sight.over {
			return
		}
		for _, tell := range sight.served {
			tell()
		}
		if len(sight.served) > 0 {
			runtime.Gosched() // those who go on need the processor, which Sleep would keep for a while
		}
		if sight.hang {
			bells.hang()
		} else if sight.takeDown {
			bells.takeDown()
		}
		r.arena.Sleep(r.bell(), bell, time.Duration(sight.due-arena.Now()))
	}
}

// sight is what the watcher sees, and so what it does.
type sight struct {
	over           bool     // nobody has waited for a period
	served         []func() // tell those who were granted a slot, or whose turn may have come
	hang, takeDown bool     // the doorbells
	due            int64    // it looks again
}

// look looks for those who can go on.
func (r *Region) look() (s sight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return sight{over: true}
	}
	r.sweepLocked()
	slots := r.lookAtSlots(&s)
	tokens := r.lookAtBuckets(&s)
	w, now := &r.watch, arena.Now()
	switch {
	case slots || tokens:
		w.waited = now
	case now-w.waited >= int64(period):
		w.on, w.hung = false, false
		return sight{over: true}
	}
	if now >= w.due {
		r.paceLocked(&s, now, tokens)
	}
	if s.due = w.due; !slots && !tokens {
		s.due = min(s.due, w.waited+int64(period))
	}
	return s
}

// paceLocked says when the watcher looks again, and whether it has doorbells until
// then. Who waits for tokens may have to go on without being rung.
func (r *Region) paceLocked(s *sight, now int64, tokens bool) {
	w, ahead := &r.watch, r.member.Ahead()
	w.hung = w.leads || ahead == 0
	w.joins = r.member.Joins()
	s.hang, s.takeDown = w.hung, !w.hung
	w.due = now + int64(period)
	if !w.hung && !tokens {
		w.due = now + int64(period)*int64(min(1+ahead, paceMax))
	}
}

// lookAtSlots notes who was granted one, and reports whether anybody waits.
func (r *Region) lookAtSlots(all *sight) (waiting bool) {
	for _, s := range r.limits {
		if s.want.Count == 0 {
			continue
		}
		waiting = true
		s.giveBack() // the scheduler has not asked for it
		if !s.want.Busy && r.member.Check(s.limit) {
			all.served = append(all.served, s.offer)
		}
	}
	return waiting
}

// lookAtBuckets notes who may be able to go on, and reports whether anybody waits.
func (r *Region) lookAtBuckets(all *sight) (waiting bool) {
	bell := r.member.Bell()
	for _, b := range r.buckets {
		if b.want.Count == 0 {
			continue
		}
		waiting = true
		r.member.Stay(b.index)
		if b.refused.Load() || bell != r.watch.heard {
			all.served = append(all.served, b.notify)
		}
	}
	r.watch.heard = bell
	return waiting
}
