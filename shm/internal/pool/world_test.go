package pool //nolint:testpackage // the search stops the code before each access to a shared word

import (
	"fmt"
	"hash/maphash"
	"iter"
	"unsafe"
)

// world is a region and the processes that share it, all in one goroutine: the
// actors are coroutines, which stop before each access to a shared word.
type world struct {
	plot   *plot
	seed   maphash.Seed
	mem    []uint64
	pool   *Pool
	actors []*actor
	locks  []*process

	turn     *actor // who goes on, nil outside
	last     *actor // who went on before
	switches int
	faults   int
	timeouts int

	inside []*process // who believes that it holds a slot of limit 0
	orphan []bool     // the slot's holder has died
	order  []int      // who got a slot or a token, one after the other
	tokens int        // in bucket 0
	ticket uint64     // the last one
	now    int64      // in periods
	wrong  string
	words  []*word  // of a state
	sum    []uint64 // the state
	logs   bool
	log    []string
}

// process is what dies and is stopped as one.
type process struct {
	id     int
	member *Member
	dead   bool
	frozen bool
	immune bool // it neither dies nor is stopped: it stands for the time
	actors []*actor

	// What the threads of a process share besides their member.
	locked, waits, told, closed bool

	// Those that watch for themselves: see caller.
	watched, handed bool
	keeps           bool     // a slot for the other that waits
	line            []*actor // those that wait, the first first
	callers         int      // that are not done
}

// actor is a thread of a process.
type actor struct {
	world   *world
	process *process
	id      int
	resume  func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool

	at      *word       // what it is about to access
	blocked func() bool // what it waits for, if it does
	asleep  bool        // it waits for its bell or the end of a period
	expired bool
	woke    int64 // the period after which it last did
	done    bool
	left    bool   // the participants, for good
	bell    uint64 // what it was when the actor looked, and 1; 0: it goes by what it sees now
	history uint64 // of all that it has seen since it was last at rest
	place   int    // in its script
	round   int
	given   bool // the slot that a caller has waited for
	got     Slot // that slot
}

// abandon unwinds an actor whose process is dead, or whose story nobody wants to
// hear to the end.
type abandon struct{}

func newWorld(p *plot, seed maphash.Seed) *world {
	w := &world{
		plot: p, seed: seed, mem: make([]uint64, p.shape.Words()),
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
	// Everybody runs to its first rest, before which nothing interferes.
	for range 2 { // some start others
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
func (w *world) step(at *word) { w.turn.pause(at) }

func (a *actor) pause(at *word) {
	a.at = at
	if !a.yield(struct{}{}) {
		panic(abandon{})
	}
}

// run lets an actor make the access that it stands before, and all that follows
// up to the next one.
func (w *world) run(a *actor) {
	var offset, value uint64
	if a.at != nil {
		offset = uint64(uintptr(unsafe.Pointer(a.at))-uintptr(unsafe.Pointer(&w.mem[0]))) / 8
		value = uint64(*a.at)
		if w.logs {
			w.logf("%d at %s = %x", a.id, w.place(int(offset)), value)
		}
		if w.isCount(int(offset)) {
			value = 0 // nobody goes by it: see key
		}
	}
	a.learn(offset, value) // that it has gone on, at least
	a.at, a.blocked = nil, nil
	w.turn = a
	a.resume()
	w.turn, w.last = nil, a
}

// learn notes what an actor has seen. As all else that it does follows from that,
// two actors with one history are in one state.
func (a *actor) learn(seen ...uint64) {
	for _, v := range seen {
		a.history = maphash.Comparable(a.world.seed, [2]uint64{a.history, v})
	}
}

func (a *actor) runnable() bool {
	return !a.done && !a.process.dead && !a.process.frozen && (a.blocked == nil || a.blocked())
}

// choices lists what can happen next, the likeliest first.
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
		case a.asleep && !a.expired && w.timeouts < w.plot.timeouts:
			all = append(all, choice{expire, a.id})
		}
		if w.faults < w.plot.faults && len(all) > 0 && a == a.process.actors[0] && !a.process.immune {
			all = append(all, choice{kill, a.id}, choice{suspend, a.id})
		}
	}
	return all
}

func (w *world) mayTurnTo(a *actor) bool {
	return w.plot.switches < 0 || w.switches < w.plot.switches || a == w.last || w.last == nil || !w.last.runnable()
}

func (w *world) do(c choice) {
	a := w.actors[c.who]
	if c.act != goOn {
		w.logf("%d %s", c.who, c.act)
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

// kill ends a process as the kernel does: its locks are gone, its memory is not.
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

// key is the state: two with the same key have the same future.
func (w *world) key() uint64 {
	w.sum = w.sum[:0]
	put := func(v uint64) { w.sum = append(w.sum, v) }
	for _, at := range w.words {
		put(uint64(*at))
	}
	for _, a := range w.actors {
		flags := uint64(a.round<<8|a.place) << 16
		for _, waiting := range a.process.line {
			put(uint64(waiting.id) + 1)
		}
		p := a.process
		for i, b := range []bool{
			a.done, a.expired, a.runnable(), p.dead, p.frozen, p.waits, p.told, p.locked, p.closed,
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
	for i := range w.plot.shape.Participants {
		put(uint64(w.locks[life(i)].number()<<8 | w.locks[place(i)].number()))
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
	if w.plot.switches >= 0 && w.last != nil {
		put(uint64(w.last.id))
	}
	return maphash.Bytes(w.seed, unsafe.Slice((*byte)(unsafe.Pointer(&w.sum[0])), len(w.sum)*8))
}

// isCount tells words that only tell a change: bells, and how many have joined.
func (w *world) isCount(offset int) bool {
	return offset == entryJoins || offset < w.plot.shape.Participants*entryWords && offset%entryWords == entryBell
}

// shared lists the words that are part of a state: all but those and names.
func (w *world) shared() (all []*word) {
	all = append(all, w.pool.entry(0, entryReaped))
	for i := range w.plot.shape.Participants {
		all = append(all, w.pool.state(i))
	}
	for n := range w.pool.limits {
		l := &w.pool.limits[n]
		all = append(all, l.mask)
		for i := range w.plot.shape.Participants {
			all = append(all, l.want(i))
		}
		for s := range l.count {
			all = append(all, l.slot(s))
		}
	}
	for n := range w.pool.buckets {
		b := &w.pool.buckets[n]
		all = append(all, b.mask, b.spent)
		for i := range w.plot.shape.Participants {
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

// place names a word.
func (w *world) place(offset int) string {
	if n := w.plot.shape.Participants * entryWords; offset < n {
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
		for p := range w.plot.shape.Participants {
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
