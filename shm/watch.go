package shm

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/shm/internal/arena"
)

// One goroutine of the process, the watcher, sleeps until slots are granted to it, or
// its turn at a bucket comes, and tells who waits. It is there while somebody waits,
// and for a period longer.
//
// A caller that waits alone for a slot is the watcher itself, as to be woken by another
// goroutine would take it as long as to be woken by another process. If others wait as well
// when it has its slot, it starts a goroutine that goes on. So at any time one watches, and
// only that one sleeps and looks for what the process was granted.
//
// Of all processes that wait one leads: each period it looks for slots of the dead. That
// is the first of them in the table, and whoever finds that nobody has done it. The others
// look at longer intervals whether it is done, so that many who wait for long cost little.
//
// The first two in the table, and whoever else leads, have doorbells of all who have the
// region open. Each of the others has one of the process that waits right before it. So
// whatever dies together, the first of the survivors is rung: it takes the lead, and looks
// for all of the dead. A process that stops waiting keeps its doorbells for a while, and
// then rings the one behind it.

// watch is what the watcher and those who wait have in common.
type watch struct {
	on       bool           // there is a watcher
	expected int            // calls of Sleep that follow, and may be the watcher
	asleep   atomic.Bool    // it may be
	running  sync.WaitGroup // watchers, and the timer's function
	due      int64          // when it looks again, if nobody rings
	waited   int64          // when somebody was last seen to wait
	heard    uint64         // the bell, when it was last listened to
	served   []func()       // the room for what a look returns: memory that is asked for takes time

	swept int64      // when the dead were last looked for
	leads bool       // nobody else did it then
	bells uint64     // of which participants there are doorbells, once one has waited for long
	joins uint64     // when they were hung
	hung  *doorbells // by the watcher, or the one before if there is none; nil: none

	timer    *time.Timer // takes the doorbells down that a caller has left
	retiring bool        // the timer runs
}

const (
	// period is how often who leads looks for slots of the dead.
	period = 10 * time.Millisecond

	// sweptMax is how long those who are served go before a sweep, which takes longer
	// than to wake them does.
	sweptMax = int64(2 * period)

	// retireAfter is how long the doorbells stay that a caller has left: a timer costs
	// about as much as a wait without it, and one that is set this seldom costs nothing.
	retireAfter = 10 * period

	// leaders is how many processes have doorbells of everybody: the second does not
	// depend on the first, which may be stopped.
	leaders = 2

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

// watchLocked sees to it that there is a watcher, or will be. began says that somebody
// waits now where nobody did: soon there are to be doorbells for all who have the region
// open.
func (r *Region) watchLocked(began bool) {
	w := &r.watch
	switch due := arena.Now() + int64(doorbellAfter); {
	case !w.on && w.expected == 0:
		r.beginLocked()
		go r.watchOver()
	case w.on && began && due < w.due && (w.bells == 0 || w.joins != r.member.Joins()):
		w.due = due
		r.member.Ring()
	}
}

// beginLocked makes the caller, or a goroutine that it starts, the watcher.
func (r *Region) beginLocked() {
	w := &r.watch
	w.on, w.due = true, arena.Now()+int64(doorbellAfter)
	w.running.Add(1)
	if w.hung == nil {
		w.hung = &doorbells{region: r}
	}
}

// watchOver is the watcher of its own goroutine.
func (r *Region) watchOver() {
	defer r.watch.running.Done()
	for {
		bell := r.member.Bell()
		sight := r.look(false)
		if sight.over {
			sight.down.takeDown()
			return
		}
		for _, tell := range sight.served {
			tell()
		}
		if len(sight.served) > 0 {
			runtime.Gosched() // those who go on need the processor, which Sleep would keep for a while
		}
		r.sleep(bell, sight)
	}
}

// watchUntil has the caller, a goroutine that waits and has been expected, watch until ready
// reports true or nobody waits, unless there is a watcher.
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
		sight := r.look(true)
		for _, tell := range sight.served {
			tell()
		}
		if sight.over || ready() {
			sight.down.takeDown()
			r.stepDown()
			return
		}
		r.sleep(bell, sight)
	}
}

// stepDown ends the part of a caller that was the watcher. If others wait a goroutine goes
// on, and if nobody does the doorbells stay for a while, as somebody may wait again.
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
	switch {
	case r.waitsLocked():
		r.watchLocked(false)
	case w.bells != 0 && !w.retiring:
		w.retireAfterLocked(retireAfter, r.retire)
	}
}

// retire takes the doorbells down that a caller has left, unless there is a watcher now.
func (r *Region) retire() {
	r.mu.Lock()
	w := &r.watch
	w.retiring = false
	if w.on || r.closed.Load() {
		r.mu.Unlock()
		return
	}
	if rest := retireAfter - time.Duration(arena.Now()-w.waited); rest > 0 {
		w.retireAfterLocked(rest, r.retire)
		r.mu.Unlock()
		return
	}
	w.running.Add(1)
	defer w.running.Done()
	down := r.retireLocked()
	r.mu.Unlock()
	down.takeDown()
}

func (w *watch) retireAfterLocked(d time.Duration, retire func()) {
	w.retiring = true
	if w.timer == nil {
		w.timer = time.AfterFunc(d, retire)
	} else {
		w.timer.Reset(d)
	}
}

// retireLocked ends the part of this process among those that wait, and returns the
// doorbells, which are to be taken down without the lock.
func (r *Region) retireLocked() (down *doorbells) {
	w := &r.watch
	down, w.hung, w.bells = w.hung, nil, 0
	if down != nil {
		r.member.RingNext() // which counts on the doorbells of this process, or is the first now
	}
	return down
}

// sleep sleeps until the process is rung, or it is time to look again.
func (r *Region) sleep(bell uint64, s sight) {
	if r.watch.hung.hang(s.bells) {
		r.ring() // for those that have died before
	}
	r.watch.asleep.Store(true)
	r.arena.Sleep(r.bell(), bell, time.Duration(s.due-arena.Now()))
	r.watch.asleep.Store(false)
}

// rouse has the watcher look. It does not call the system if that is awake, as it is when
// it has itself served the one that is roused.
func (r *Region) rouse() {
	r.member.Touch()
	if r.watch.asleep.Load() { // else it sees that the bell has changed
		r.arena.Wake(r.bell())
	}
}

// waitsLocked reports whether anybody in this process waits for anything of the region.
func (r *Region) waitsLocked() bool {
	return slices.ContainsFunc(r.limits, func(s *Slots) bool { return s.want.Count > 0 }) ||
		slices.ContainsFunc(r.buckets, func(b *Bucket) bool { return b.want.Count > 0 })
}

// sight is what the watcher sees, and so what it does.
type sight struct {
	over   bool       // it ends: nobody waits, or the region is closed
	served []func()   // tell those who were granted a slot, or whose turn may have come; until the next look
	bells  uint64     // of which participants there are to be doorbells
	down   *doorbells // which are to be taken down as it ends
	due    int64      // it looks again
}

// look looks for those who can go on. A watcher that is a caller ends when nobody waits, any
// other when nobody has done so for a period.
func (r *Region) look(caller bool) (s sight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		r.watch.on = false
		return sight{over: true, down: r.retireLocked()}
	}
	w, now := &r.watch, arena.Now()
	s.served = w.served[:0]
	slots := r.lookAtSlots(&s)
	tokens := r.lookAtBuckets(&s)
	w.served = s.served
	if len(s.served) == 0 || r.rung.Load() || now-w.swept >= sweptMax {
		r.sweepLocked() // which rings this process if it is granted anything
	}
	switch {
	case slots || tokens:
		w.waited = now
	case caller:
		return sight{over: true}
	case now-w.waited >= int64(period):
		w.on = false
		return sight{over: true, down: r.retireLocked()}
	}
	if len(s.served) == 0 && (now >= w.due || w.bells != 0) {
		r.paceLocked(now, tokens)
	}
	s.bells = w.bells
	if s.due = w.due; !slots && !tokens {
		s.due = min(s.due, w.waited+int64(period))
	}
	return s
}

// paceLocked says when the watcher looks again, and of which participants it has doorbells
// until then. Who waits for tokens may have to go on without being rung.
func (r *Region) paceLocked(now int64, tokens bool) {
	w := &r.watch
	ahead, last := r.member.Ahead()
	w.joins = r.member.Joins()
	w.due = now + int64(period)
	if ahead < leaders || w.leads {
		w.bells = everybody
	} else {
		w.bells = 1 << last
	}
	if ahead > 0 && !w.leads && !tokens {
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
			all.served = append(all.served, s.offered)
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
