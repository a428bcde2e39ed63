package shm

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/shm/internal/arena"
)

// One goroutine of the process, the watcher, sleeps until slots are granted to the
// process, or its turn at a bucket comes, and then notifies the waiters. It runs while
// there are waiters, and for a period longer.
//
// A caller that is the only waiter for a slot is the watcher itself, as a wake-up by
// another goroutine would take as long as one by another process. If there are other
// waiters when it gets its slot, it starts a goroutine that takes over. So at any time
// there is one watcher, and only the watcher sleeps and looks for grants.
//
// One of all waiting processes leads: each period it looks for slots of the dead. That is
// the first of them in the table, and any that finds that it has not been done. The
// others check at longer intervals, so that many long waiters cost little.
//
// The first two waiting processes in the table, and any other that leads, have doorbells
// of all processes that have the region open. Each of the others has one of the waiting
// process right before it. So whichever processes die together, the first of the
// survivors is rung: it takes the lead, and looks for all of the dead. A process that
// stops waiting keeps its doorbells for a while, and then rings the one behind it.

// watch is the state that the watcher and the waiters share. It is guarded by the
// region's lock, except for asleep, running and what doorbells refers to.
type watch struct {
	on          bool           // there is a watcher
	expected    int            // announced calls of Sleep, which may become the watcher
	asleep      atomic.Bool    // the watcher may be asleep
	running     sync.WaitGroup // watchers, and the timer's function
	due         int64          // when the watcher looks again without a ring
	lastWaiting int64          // when there was last a waiter
	lastBell    uint64         // the bell at the last look
	served      []func()       // buffer for lookResult.served, reused because allocation takes time

	swept     int64      // when this process last called Sweep
	leads     bool       // that call looked for the dead
	bellMask  uint64     // participants to have doorbells of; 0 until a waiter has waited for doorbellAfter
	joins     uint64     // Joins when bellMask was set
	doorbells *doorbells // of the watcher, or of the previous one if there is none; nil: none

	timer    *time.Timer // removes the doorbells that a caller has left
	retiring bool        // the timer is set
}

const (
	// period is how often the leading process looks for slots of the dead.
	period = 10 * time.Millisecond

	// sweptMax is the maximum time without a sweep: waking waiters comes before it,
	// because a sweep takes longer than a wake-up.
	sweptMax = int64(2 * period)

	// retireAfter is how long doorbells stay after a caller has left them. To set the
	// timer costs about as much as a whole wait without it, so a caller sets it before it
	// sleeps, not when it has its slot.
	retireAfter = 100 * period

	// leaders is the number of processes that have doorbells of all participants: the
	// second does not depend on the first, which may be stopped.
	leaders = 2

	// paceMax is the maximum number of periods that a process sleeps if it does not lead.
	paceMax = 8

	// doorbellAfter is how long a waiter waits before doorbells are installed: most waits
	// are shorter.
	doorbellAfter = time.Millisecond
)

// sweepLocked looks for slots of the dead, and for grants that are not accepted, at most
// once a period; for slots of the dead also whenever a doorbell has rung.
func (r *Region) sweepLocked() {
	if r.rung.Swap(false) {
		r.member.Reap()
	}
	if now := arena.Now(); now-r.watch.swept >= int64(period) {
		r.watch.swept = now
		r.watch.leads = r.member.Sweep(now, int64(period))
		for _, b := range r.buckets {
			b.handle.Evict(b.holds())
		}
	}
}

// watchLocked makes sure that there is a watcher, or will be. began says that these are
// the first waiters: doorbells of all participants will then be due soon.
func (r *Region) watchLocked(began bool) {
	w := &r.watch
	switch {
	case !w.on && w.expected == 0:
		r.beginLocked()
		go r.watchOver()
	case w.on && began && (w.bellMask == 0 || w.joins != r.member.Joins()):
		if due := arena.Now() + int64(doorbellAfter); due < w.due {
			w.due = due
			r.member.Ring()
		}
	}
}

// beginLocked makes the caller, or a goroutine that it starts, the watcher.
func (r *Region) beginLocked() {
	w := &r.watch
	w.on, w.due = true, arena.Now()+int64(doorbellAfter)
	w.running.Add(1)
	if w.doorbells == nil {
		w.doorbells = &doorbells{region: r}
	}
}

// watchOver is the watcher as a goroutine of its own.
func (r *Region) watchOver() {
	defer r.watch.running.Done()
	for {
		bell := r.member.Bell()
		found := r.look(false)
		if found.over {
			found.down.stop()
			return
		}
		for _, notify := range found.served {
			notify()
		}
		if len(found.served) > 0 {
			runtime.Gosched() // the notified goroutines need the processor, which Sleep would keep for a while
		}
		r.sleep(bell, found)
	}
}

// watchUntil makes the caller, which has announced itself by Expect, the watcher until
// ready reports true or there are no waiters. If there is a watcher already, it returns
// at once.
func (r *Region) watchUntil(ready func() bool) {
	w := &r.watch
	r.mu.Lock()
	w.expected--
	begin := !w.on && !r.closed.Load() && r.waitsLocked()
	if begin {
		r.beginLocked()
	}
	r.mu.Unlock()
	if !begin {
		return
	}
	defer w.running.Done()
	for {
		bell := r.member.Bell()
		if ready() {
			r.stepDown()
			return
		}
		found := r.look(true)
		for _, notify := range found.served {
			notify()
		}
		if found.over {
			found.down.stop()
			r.stepDown()
			return
		}
		if len(found.served) == 0 {
			r.sleep(bell, found)
		}
	}
}

// stepDown ends the watch of a caller. If there are waiters, a goroutine takes over;
// otherwise the doorbells stay for a while, as more waiters may come.
func (r *Region) stepDown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.watch
	w.on = false
	if r.closed.Load() {
		return
	}
	if r.rung.Load() {
		r.sweepLocked() // ring has left it to the watcher
	}
	if r.waitsLocked() {
		r.watchLocked(false)
	}
}

// retire removes the doorbells that a caller has left, once they have stayed long enough.
func (r *Region) retire() {
	r.mu.Lock()
	w := &r.watch
	w.retiring = false
	if w.bellMask == 0 || r.closed.Load() {
		r.mu.Unlock()
		return
	}
	rest := retireAfter - time.Duration(arena.Now()-w.lastWaiting)
	if w.on {
		rest = retireAfter // the watcher may be a caller, and sets no timer while one is set
	}
	if rest > 0 {
		w.retireAfterLocked(rest, r.retire)
		r.mu.Unlock()
		return
	}
	w.running.Add(1)
	defer w.running.Done()
	down := r.retireLocked()
	r.mu.Unlock()
	down.stop()
}

func (w *watch) retireAfterLocked(d time.Duration, retire func()) {
	w.retiring = true
	if w.timer == nil {
		w.timer = time.AfterFunc(d, retire)
	} else {
		w.timer.Reset(d)
	}
}

// retireLocked ends this process's role among the waiting processes, and returns its
// doorbells, which the caller must stop after releasing the lock.
func (r *Region) retireLocked() (down *doorbells) {
	w := &r.watch
	down, w.doorbells, w.bellMask = w.doorbells, nil, 0
	if down != nil {
		r.member.RingNext() // that process depends on the doorbells of this one, or is the first now
	}
	return down
}

// sleep sleeps until the process is rung, or s.due.
func (r *Region) sleep(bell uint64, s lookResult) {
	if r.watch.doorbells.update(s.bellMask) {
		r.ring() // for processes that have died before
	}
	r.watch.asleep.Store(true)
	arena.Sleep(r.bell(), bell, time.Duration(s.due-arena.Now()))
	r.watch.asleep.Store(false)
}

// rouse makes the watcher look. It skips the system call if the watcher is awake, as it
// is when it has itself served the caller that is roused.
func (r *Region) rouse() {
	r.member.Touch()
	if r.watch.asleep.Load() { // otherwise it sees that the bell has changed
		arena.Wake(r.bell())
	}
}

// waitsLocked reports whether this process has waiters for anything of the region.
func (r *Region) waitsLocked() bool {
	return slices.ContainsFunc(r.limits, func(s *Slots) bool { return s.want.Count > 0 }) ||
		slices.ContainsFunc(r.buckets, func(b *Bucket) bool { return b.want.Count > 0 })
}

// lookResult is what the watcher found, and what it does next.
type lookResult struct {
	over     bool       // the watch ends: there are no waiters, or the region is closed
	served   []func()   // notify the receivers of slots, or of a turn; valid until the next look
	bellMask uint64     // the participants to have doorbells of
	down     *doorbells // to stop when the watch ends
	due      int64      // when to look again
}

// look finds the waiters that can proceed. The watch of a caller ends when there are no
// waiters, that of a goroutine when there have been none for a period.
func (r *Region) look(caller bool) (s lookResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		r.watch.on = false
		return lookResult{over: true, down: r.retireLocked()}
	}
	w, now := &r.watch, arena.Now()
	s.served = w.served[:0]
	slots := r.lookAtSlots(&s)
	tokens := r.lookAtBuckets(&s)
	w.served = s.served
	if len(s.served) == 0 || r.rung.Load() || now-w.swept >= sweptMax {
		r.sweepLocked() // if this grants anything to this process, it rings
	}
	switch {
	case slots || tokens:
		w.lastWaiting = now
	case caller:
		return lookResult{over: true}
	case now-w.lastWaiting >= int64(period):
		w.on = false
		return lookResult{over: true, down: r.retireLocked()}
	}
	if len(s.served) == 0 && (now >= w.due || w.bellMask != 0) {
		r.paceLocked(now, tokens)
		if caller && !w.retiring {
			w.retireAfterLocked(retireAfter, r.retire)
		}
	}
	s.bellMask = w.bellMask
	if s.due = w.due; !slots && !tokens {
		s.due = min(s.due, w.lastWaiting+int64(period))
	}
	return s
}

// paceLocked sets when the watcher looks again, and the participants that it has
// doorbells of until then. A process that waits for tokens may have to proceed without a
// ring, so it looks every period.
func (r *Region) paceLocked(now int64, tokens bool) {
	w := &r.watch
	ahead, last := r.member.Ahead()
	w.joins = r.member.Joins()
	w.due = now + int64(period)
	if ahead < leaders || w.leads {
		w.bellMask = allParticipants
	} else {
		w.bellMask = 1 << last
	}
	if ahead > 0 && !w.leads && !tokens {
		w.due = now + int64(period)*int64(min(1+ahead, paceMax))
	}
}

// lookAtSlots collects the limits that have a grant, and reports whether there are
// waiters.
func (r *Region) lookAtSlots(all *lookResult) (waiting bool) {
	for _, s := range r.limits {
		if s.want.Count == 0 {
			continue
		}
		waiting = true
		s.releaseKept() // the scheduler has not asked for it
		if !s.want.Busy && s.handle.Check() {
			all.served = append(all.served, s.offered)
		}
	}
	return waiting
}

// lookAtBuckets collects the buckets that may proceed, and reports whether there are
// waiters.
func (r *Region) lookAtBuckets(all *lookResult) (waiting bool) {
	bell := r.member.Bell()
	for _, b := range r.buckets {
		if b.want.Count == 0 {
			continue
		}
		waiting = true
		b.handle.Heartbeat()
		if b.refused.Load() || bell != r.watch.lastBell {
			all.served = append(all.served, b.notify)
		}
	}
	r.watch.lastBell = bell
	return waiting
}
