package sched

import "slices"

// lending is the functions that have lent their slots. Those that want them back go before
// all that is queued, even through a pause: they run already. The engine's lock guards it.
type suspendedFuncs struct {
	e       *Engine
	n       int      // functions that have lent their slots
	resumes []*entry // of those that want them back, in the order in which they do
}

// wanted reports whether a function wants its slots back.
func (l *suspendedFuncs) wanted() bool { return len(l.resumes) > 0 }

// holds reports whether a function that wants its slots back lacks nothing but slots, so that
// nothing else may start. Others wait for their keys, and keep no slot from what has another.
func (l *suspendedFuncs) holds() bool { return slices.ContainsFunc(l.resumes, l.lacksSlots) }

func (l *suspendedFuncs) lacksSlots(x *entry) bool { return l.e.queue.log().Keys().HasRoom(x.Key) }

// next returns the first function that can have its slots back. hold says that
// nothing else may start: there is one, or one that lacks nothing but slots.
func (l *suspendedFuncs) next(running int) (x *entry, hold bool) {
	e := l.e
	for _, x := range l.resumes {
		switch {
		case !l.lacksSlots(x):
		case running > 0 && running+int(x.Weight) > int(e.gate.limit.Load()):
			return nil, true
		case e.cfg.Slots != nil && !e.shared.regain(x):
			return nil, true
		default:
			return x, true
		}
	}
	return nil, false
}

// reserves reports whether a function waits for several slots to come free, so that nothing else
// gets them. One that waits for a single slot holds back what would wait for that slot anyway.
func (l *suspendedFuncs) reserves() bool {
	return slices.ContainsFunc(l.resumes, func(x *entry) bool { return x.Weight > 1 && l.lacksSlots(x) })
}

// resume gives a function its slots back, which are counted already.
func (l *suspendedFuncs) resume(x *entry) {
	i := slices.Index(l.resumes, x)
	l.resumes = slices.Delete(l.resumes, i, i+1)
	l.e.queue.log().Keys().Admit(x.Key)
	l.e.holders.begin(x)
	l.e.news.granted.append(x)
}
