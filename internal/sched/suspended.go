package sched

import "slices"

// suspendedFuncs are the functions that have suspended their slots. Those that wait to
// resume go before all that is queued, even through a pause: they are already running.
// The engine's lock guards it.
type suspendedFuncs struct {
	e       *Engine
	n       int      // functions with suspended slots
	resumes []*entry // entries of the functions that wait to resume, in order
}

// wanted reports whether a function waits to resume.
func (l *suspendedFuncs) wanted() bool { return len(l.resumes) > 0 }

// holds reports whether a function that waits to resume lacks only slots, so that nothing
// else may start. A function that waits for its key reserves no slot.
func (l *suspendedFuncs) holds() bool { return slices.ContainsFunc(l.resumes, l.lacksSlots) }

func (l *suspendedFuncs) lacksSlots(x *entry) bool { return l.e.queue.log().Keys().HasRoom(x.Key) }

// next returns the first function that can resume. hold says that nothing else may start:
// a function can resume, or lacks only slots.
func (l *suspendedFuncs) next(running int) (x *entry, hold bool) {
	e := l.e
	for _, x := range l.resumes {
		switch {
		case !l.lacksSlots(x):
		case running > 0 && int(x.Weight) > int(e.gate.limit.Load())-running:
			return nil, true
		case e.cfg.Slots != nil && !e.shared.regain(x):
			return nil, true
		default:
			return x, true
		}
	}
	return nil, false
}

// reserves reports whether a function waits for several slots to come free, so that
// nothing else gets them. One that waits for a single slot holds back only what would
// wait for that slot anyway.
func (l *suspendedFuncs) reserves() bool {
	return slices.ContainsFunc(l.resumes, func(x *entry) bool { return x.Weight > 1 && l.lacksSlots(x) })
}

// resume gives a function its slots again, which are counted already.
func (l *suspendedFuncs) resume(x *entry) {
	if i := slices.Index(l.resumes, x); i == 0 { // mostly: to move all others would take quadratic time
		l.resumes[0] = nil
		l.resumes = l.resumes[1:]
	} else {
		l.resumes = slices.Delete(l.resumes, i, i+1)
	}
	l.e.queue.log().Keys().Admit(x.Key)
	l.e.holders.begin(x)
	l.e.decided.granted.append(x)
}
