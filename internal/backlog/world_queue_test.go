package backlog_test

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stintgo/stint/internal/backlog"
)

// The operations of the model test's world that only a durable queue has need of.

func (w *world) takesAll() bool { return slices.Equal(w.takes, everyClass[:w.classes]) }

// serve changes the classes that are taken. One of them has no entries ever.
func (w *world) serve(all bool) string {
	w.takes = nil
	for class := range w.classes {
		if all || w.rnd.IntN(2) == 0 {
			w.takes = append(w.takes, class)
		}
	}
	if !all && w.rnd.IntN(2) == 0 {
		w.takes = append(w.takes, classes+w.rnd.IntN(3))
	}
	w.dispatch()
	return fmt.Sprintf("serve %v", w.takes)
}

// comeBack queues anew what has run, with the ticket that it had.
func (w *world) comeBack(r run) {
	e := &backlog.Entry[int]{Value: r.id}
	w.entries[r.id] = e
	w.fast.PushAt(e, backlog.Arrival{
		Tier: int8(r.queue.tier), Key: r.queue.key, Class: int32(r.queue.class), Weight: int32(r.weight),
	}, r.ticket)
	w.slow.push(r.id, r.queue, r.weight, r.ticket)
	if e.Ticket() != r.ticket {
		w.t.Fatalf("entry %d has ticket %d, it had %d", r.id, e.Ticket(), r.ticket)
	}
}

// fail has many entries come back at once, in any order, as when a worker is gone.
func (w *world) fail() string {
	var gone []run
	w.runs = slices.DeleteFunc(w.runs, func(r run) bool {
		if r.ticket == 0 || w.rnd.IntN(2) == 0 {
			return false
		}
		gone = append(gone, r)
		return true
	})
	w.rnd.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
	for _, r := range gone {
		w.running -= r.weight
		w.fast.Keys().Finish(r.queue.key)
		w.slow.finish(r.queue.key)
		w.comeBack(r)
	}
	w.dispatch()
	return fmt.Sprintf("fail %v", gone)
}

// restart makes a backlog anew of what waits and runs, in the order of age.
func (w *world) restart() string {
	if w.rnd.IntN(20) > 0 {
		return "no restart"
	}
	all := w.runs
	for _, e := range w.slow.waiting {
		all = append(all, run{e.id, e.queue, e.weight, e.ticket})
	}
	all = slices.DeleteFunc(all, func(r run) bool { return r.ticket == 0 })
	slices.SortFunc(all, func(x, y run) int { return cmp.Compare(x.ticket, y.ticket) })
	blocked := w.slow.blocked
	w.fast, w.slow = backlog.New[int](w.cfg), newModel(w.cfg)
	for key, is := range blocked {
		if is != 0 {
			w.fast.Keys().Block(key, is)
			w.slow.block(key, is)
		}
	}
	w.runs, w.running = nil, 0
	for _, r := range all {
		w.comeBack(r)
	}
	w.dispatch()
	return fmt.Sprintf("restart with %d", len(all))
}

func (w *world) block() string {
	key, cause := keys[w.rnd.IntN(len(keys))], backlog.Cause(1+w.rnd.IntN(3))
	is := w.slow.blocked[key]
	if w.rnd.IntN(2) == 0 {
		w.fast.Keys().Block(key, cause)
		is |= cause
	} else {
		w.fast.Keys().Unblock(key, cause)
		is &^= cause
	}
	w.slow.block(key, is)
	w.dispatch()
	return fmt.Sprintf("block %q: %v", key, is)
}
