package machine

// timer is something that is due at a time. The zero timer is not
// set.
type timer struct {
	at  int64    // nanoseconds since 1970
	t   *task    // whose it is,
	k   *keyRate // or whose
	pos int      // in the heap, from 1; 0: it is not set
}

// timers is a binary heap of what is due, the earliest first.
type timers []*timer

// set has e go off at a time, instead of when it would have.
func (h *timers) set(e *timer, at int64) {
	h.stop(e)
	e.at = at
	*h = append(*h, e)
	e.pos = len(*h)
	h.up(e.pos)
}

// stop has e not go off.
func (h *timers) stop(e *timer) {
	if e.pos == 0 {
		return
	}
	s, i, last := *h, e.pos, len(*h)
	h.swap(i, last)
	s[last-1] = nil
	*h = s[:last-1]
	e.pos = 0
	if i < last {
		h.down(i)
		h.up(i)
	}
}

// first returns what is due first, nil if there is nothing.
func (h timers) first() *timer {
	if len(h) == 0 {
		return nil
	}
	return h[0]
}

func (h timers) swap(i, j int) {
	h[i-1], h[j-1] = h[j-1], h[i-1]
	h[i-1].pos, h[j-1].pos = i, j
}

func (h timers) up(i int) {
	for ; i > 1 && h[i-1].at < h[i/2-1].at; i /= 2 {
		h.swap(i, i/2)
	}
}

func (h timers) down(i int) {
	for {
		least := i
		for child := 2 * i; child <= min(2*i+1, len(h)); child++ {
			if h[child-1].at < h[least-1].at {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}
