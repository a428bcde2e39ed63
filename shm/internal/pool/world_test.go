package pool //nolint:testpackage // the search stops the code before each access to a shared word

import (
	"fmt"
	"hash/maphash"
	"iter"
	"unsafe"
)

// world is a region and the processes that share it. All run in one goroutine: the
// actors are coroutines, which stop before each access to a shared word.
type world struct {
	scenario *scenario
	seed     maphash.Seed
	mem      []uint64
	pool     *Pool
	actors   []*actor
	locks    []*process

	running  *actor // nil between steps
	last     *actor // the actor that ran before
	switches int
	faults   int
	timeouts int

	inside []*process // the process that holds each slot of limit 0, by its own account
	orphan []bool     // the slot's holder has died
	order  []int      // the actors that got a slot or a token, in that order
	tokens int        // in bucket 0
	ticket uint64     // the last one drawn
	now    int64      // in periods
	wrong  string
	words  []*word  // that are part of a state
	sum    []uint64 // the last state
	logs   bool
	log    []string
}

// process is the unit that dies or is stopped.
type process struct {
	id     int
	member *Member
	dead   bool
	frozen bool
	immune bool // it neither dies nor is stopped: it represents the passing of time
	actors []*actor

	// State that the threads of a process share, besides their member.
	locked, waits, notified, closed bool

	// State of callers that watch for themselves: see call.
	watched, handed bool
	keeps           bool     // a released slot is kept for the other caller
	queue           []*actor // waiters, in order
	callers         int      // that have not finished
}

// actor is a thread of a process.
type actor struct {
	world   *world
	process *process
	id      int
	resume  func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool

	at      *word       // the word of its next access
	blocked func() bool // reports whether it can go on; nil if it is not blocked
	asleep  bool        // until its bell changes or the period ends
	expired bool
	woke    int64 // the period after which it last expired
	done    bool
	left    bool   // it has called Leave
	bell    uint64 // the bell when the actor checked, plus 1; 0: not set
	history uint64 // hash of all that it has read since the last rest
	place   int    // in its script
	round   int
	given   bool // a waiting caller has received its slot
	got     Slot // that slot
}

// abandon unwinds an actor whose process is dead, or whose world has ended.
type abandon struct{}

func newWorld(p *scenario, seed maphash.Seed) *world {
	w := &world{
		scenario: p, seed: seed, mem: make([]uint64, p.shape.Words()),
		locks:  make([]*process, 2*ParticipantsMax),
		inside: make([]*process, p.shape.Limits[0]),
		orphan: make([]bool, p.shape.Limits[0]),
	}
	w.pool = New(w.mem, p.shape, w)
	w.words = w.shared()
	for _, script := range p.actors {
		w.start(&process{id: len(w.actors)}, script)
	}
	step = w.step
	// Each actor runs to its first rest, before which no other interferes.
	for range 2 { // twice, as some actors start others
		for _, a := range w.actors {
			for a.place == 0 && !a.done {
				w.run(a)
			}
		}
	}
	w.last = nil
	return w
}

func (w *world) start(p *process, script func(*actor)) {
	a := &actor{world: w, process: p, id: len(w.actors)}
	a.resume, a.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != any(abandon{}) {
				w.fail(fmt.Sprint("panic: ", r))
			}
		}()
		a.yield = yield
		script(a)
		a.done = true
	})
	p.actors = append(p.actors, a)
	w.actors = append(w.actors, a)
}

// end unwinds all actors.
func (w *world) end() {
	for _, a := range w.actors {
		a.stop()
	}
	step = nil
}

func (w *world) fail(wrong string) {
	if w.wrong == "" {
		w.wrong = wrong
	}
}

// step is called before each access to a shared word.
func (w *world) step(at *word) { w.running.pause(at) }

func (a *actor) pause(at *word) {
	a.at = at
	if !a.yield(struct{}{}) {
		panic(abandon{})
	}
}

// run lets an actor make its next access, and continue up to the one after it.
func (w *world) run(a *actor) {
	var offset, value uint64
	if a.at != nil {
		offset = uint64(uintptr(unsafe.Pointer(a.at))-uintptr(unsafe.Pointer(&w.mem[0]))) / 8
		value = uint64(*a.at)
		if w.logs {
			w.logf("%d at %s = %x", a.id, w.place(int(offset)), value)
		}
		if w.isCount(int(offset)) {
			value = 0 // actors do not depend on it: see key
		}
	}
	a.learn(offset, value) // at the least that the actor has continued
	a.at, a.blocked = nil, nil
	w.running = a
	a.resume()
	w.running, w.last = nil, a
}

// learn adds what an actor has read to its history. The rest of its behaviour follows
// from that, so two actors with the same history are in the same state.
func (a *actor) learn(seen ...uint64) {
	for _, v := range seen {
		a.history = maphash.Comparable(a.world.seed, [2]uint64{a.history, v})
	}
}

func (a *actor) runnable() bool {
	return !a.done && !a.process.dead && !a.process.frozen && (a.blocked == nil || a.blocked())
}

// choices lists the possible next steps, the most likely first.
func (w *world) choices() (all []choice) {
	for _, a := range w.actors {
		if a.runnable() && w.mayTurnTo(a) {
			all = append(all, choice{goOn, a.id})
		}
	}
	for _, a := range w.actors {
		switch {
		case a.done, a.process.dead, a.process.frozen:
			continue
		case a.asleep && !a.expired && w.timeouts < w.scenario.timeouts:
			all = append(all, choice{expire, a.id})
		}
		if w.faults < w.scenario.faults && len(all) > 0 && a == a.process.actors[0] && !a.process.immune {
			all = append(all, choice{kill, a.id}, choice{suspend, a.id})
		}
	}
	return all
}

func (w *world) mayTurnTo(a *actor) bool {
	return w.scenario.switches < 0 || w.switches < w.scenario.switches ||
		a == w.last || w.last == nil || !w.last.runnable()
}

func (w *world) do(c choice) {
	a := w.actors[c.actor]
	if c.act != goOn {
		w.logf("%d %s", c.actor, c.act)
	}
	switch c.act {
	case goOn:
		if w.last != nil && a != w.last && w.last.runnable() {
			w.switches++
		}
		w.run(a)
	case expire:
		w.timeouts++
		a.expire()
	case kill:
		w.faults++
		w.kill(a.process)
	case suspend:
		w.faults++
		a.process.frozen = true
	}
}

// kill ends a process as the kernel does: its locks are released, its memory stays.
func (w *world) kill(p *process) {
	p.dead = true
	for i, holder := range w.locks {
		if holder == p {
			w.locks[i] = nil
		}
	}
	l := &w.pool.limits[0]
	for s := range l.count {
		if w.inside[s] == p {
			w.inside[s] = nil
		}
		if p.member != nil && uint64(*l.slot(s)) == p.member.held {
			w.orphan[s] = true
		}
	}
}

// key is a hash of the state: two worlds with the same key have the same future.
func (w *world) key() uint64 {
	w.sum = w.sum[:0]
	put := func(v uint64) { w.sum = append(w.sum, v) }
	for _, at := range w.words {
		put(uint64(*at))
	}
	for _, a := range w.actors {
		flags := uint64(a.round<<8|a.place) << 16
		for _, waiting := range a.process.queue {
			put(uint64(waiting.id) + 1)
		}
		p := a.process
		for i, b := range []bool{
			a.done, a.expired, a.runnable(), p.dead, p.frozen, p.waits, p.notified, p.locked, p.closed,
			p.watched, p.handed, a.given, a.got.Abandoned,
		} {
			if b {
				flags |= 1 << i
			}
		}
		put(a.history)
		put(uint64(a.woke))
		put(flags)
		if a.bell != 0 && a.process.member != nil {
			put(*w.pool.Bell(a.process.member.index) + 1 - a.bell)
		}
	}
	for i := range w.scenario.shape.Participants {
		put(uint64(w.locks[lifeLock(i)].number()<<8 | w.locks[joinLock(i)].number()))
	}
	put(uint64(w.tokens)<<32 | w.ticket)
	put(uint64(w.now))
	for i, p := range w.inside {
		put(uint64(p.number()))
		if w.orphan[i] {
			put(1)
		}
	}
	put(uint64(w.faults)<<32 | uint64(w.timeouts)<<16 | uint64(w.switches))
	if w.scenario.switches >= 0 && w.last != nil {
		put(uint64(w.last.id))
	}
	return maphash.Bytes(w.seed, unsafe.Slice((*byte)(unsafe.Pointer(&w.sum[0])), len(w.sum)*8))
}

// isCount reports whether a word only signals changes: a bell, or the number of joins.
func (w *world) isCount(offset int) bool {
	return offset == entryJoins || offset < w.scenario.shape.Participants*entryWords && offset%entryWords == entryBell
}

// shared lists the words that are part of a state: all except bells, joins and names.
func (w *world) shared() (all []*word) {
	all = append(all, w.pool.entry(0, entryReaped))
	for i := range w.scenario.shape.Participants {
		all = append(all, w.pool.state(i))
	}
	for n := range w.pool.limits {
		l := &w.pool.limits[n]
		all = append(all, l.mask)
		for i := range w.scenario.shape.Participants {
			all = append(all, l.want(i))
		}
		for s := range l.count {
			all = append(all, l.slot(s))
		}
	}
	for n := range w.pool.buckets {
		b := &w.pool.buckets[n]
		all = append(all, b.mask, b.spent)
		for i := range w.scenario.shape.Participants {
			all = append(all, b.want(i), b.need(i))
		}
	}
	return all
}

func (p *process) number() int {
	if p == nil {
		return 0
	}
	return p.id + 1
}

func (w *world) logf(format string, args ...any) {
	if w.logs {
		w.log = append(w.log, fmt.Sprintf(format, args...))
	}
}

// place returns the name of a word.
func (w *world) place(offset int) string {
	if n := w.scenario.shape.Participants * entryWords; offset < n {
		return fmt.Sprintf("participant %d word %d", offset/entryWords, offset%entryWords)
	}
	for i := range w.pool.limits {
		l := &w.pool.limits[i]
		at := (*word)(&w.mem[offset])
		if at == l.mask {
			return "mask"
		}
		for s := range l.count {
			if at == l.slot(s) {
				return fmt.Sprint("slot ", s)
			}
		}
		for p := range w.scenario.shape.Participants {
			if at == l.want(p) {
				return fmt.Sprint("want ", p)
			}
		}
	}
	for i := range w.pool.buckets {
		b := &w.pool.buckets[i]
		switch at := (*word)(&w.mem[offset]); at {
		case b.mask:
			return "line"
		case b.spent:
			return "spent"
		}
	}
	return fmt.Sprint("word ", offset)
}
