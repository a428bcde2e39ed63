package sched

// suspendedFuncs are the functions that have suspended their slots. Those that wait to
// resume go before all that is queued, even through a pause: they are already running.
// The engine's lock guards it.
type suspendedFuncs struct {
	e       *Engine
	n       int     // functions with suspended slots
	resumes resumes // the entries of those that wait to resume
}

// wanted reports whether a function waits to resume.
func (l *suspendedFuncs) wanted() bool { return !l.resumes.empty() }

// holds reports whether a function that waits to resume lacks only slots, so that nothing
// else may start. A function that waits for its key reserves no slot.
func (l *suspendedFuncs) holds() bool { return l.resumes.room.n > 0 }

// next returns the first function that can resume. hold says that nothing else may start:
// a function can resume, or lacks only slots.
func (l *suspendedFuncs) next(running int) (x *entry, hold bool) {
	e := l.e
	x = l.resumes.first()
	switch {
	case x == nil:
		return nil, false
	case running > 0 && int(x.Weight) > int(e.gate.limit.Load())-running:
		return nil, true
	case e.cfg.Slots != nil && !e.shared.regain(x):
		return nil, true
	default:
		return x, true
	}
}

// want makes x wait to resume, behind all others that do.
func (l *suspendedFuncs) want(x *entry) {
	l.resumes.add(x, l.e.queue.log().Keys().HasRoom(x.Key))
}

// resume gives the function that next has returned its slots again, which are counted
// already.
func (l *suspendedFuncs) resume(x *entry) {
	l.resumes.drop()
	l.e.queue.log().Keys().Admit(x.Key)
	l.e.holders.begin(x)
	l.e.decided.granted.append(x)
}
