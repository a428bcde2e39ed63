package sched

import (
	"slices"
	"time"

	"github.com/stintgo/stint/internal/shrink"
)

// holders are the entries that have slots, in an engine that keeps an entry for each of
// them: with shared slots, to find the work whose slot was taken away, and with
// [Config.Holders], to report the work that has slots. Without the latter, sharing.spare is one of
// them, although it has no slot. The engine's lock guards it.
type holders struct {
	e   *Engine
	all []*entry
}

func (h *holders) add(x *entry) {
	x.at = len(h.all)
	h.all = append(h.all, x)
}

func (h *holders) remove(x *entry) {
	last := len(h.all) - 1
	h.all[x.at] = h.all[last]
	h.all[x.at].at = x.at
	h.all = shrink.Pop(h.all)
}

// of returns the entry that has a grant of shared slots, or nil.
func (h *holders) of(grant uint64) *entry {
	i := slices.IndexFunc(h.all, func(x *entry) bool { return x.grant == grant && !x.lost })
	if i < 0 {
		return nil
	}
	return h.all[i]
}

// Holder is work that has slots.
type Holder struct {
	Ask

	Since time.Time // when it first got them; it may have suspended them since
}

// list returns the work that has slots, in no order, or nil if the engine does not keep it.
func (h *holders) list() []Holder {
	if !h.e.cfg.Holders {
		return nil
	}
	all := make([]Holder, len(h.all))
	for i, x := range h.all {
		all[i] = Holder{x.Ask, h.e.queue.clock.time(x.first)}
	}
	return all
}

// begun returns when each slot in use was given out, of each entry as many as the limit, and how
// many more it left out: after a Resize an entry may have millions.
func (h *holders) begun(limit int) (all []int64, more int) {
	for _, x := range h.all {
		n := min(int(x.Weight), limit)
		more += int(x.Weight) - n
		for range n {
			all = append(all, x.began)
		}
	}
	return all, more
}

// begin registers x as a holder, if the engine keeps holders.
func (h *holders) begin(x *entry) {
	e := h.e
	if !e.tracks {
		return
	}
	h.add(x)
	if e.cfg.Holders {
		x.began = e.queue.clock.age()
		x.first = x.began
	}
}

// replace gives x the slots that other was granted for it: x had suspended its own.
func (h *holders) replace(other, x *entry) {
	h.remove(other)
	h.add(x)
	x.began, x.grant, x.lost = other.began, other.grant, other.lost
}

// yield releases everything that x has except the slots of this engine.
func (c *core) yield(x *entry) {
	c.yieldKey(x)
	c.yieldRest(x)
}

// yieldKey releases the place of x in the count of its key.
func (c *core) yieldKey(x *entry) {
	if x.Key != "" {
		c.queue.log().Keys().Finish(x.Key)
	}
}

// yieldRest releases the shared slot of x, and its place among the holders.
func (c *core) yieldRest(x *entry) {
	if c.cfg.Slots != nil {
		c.shared.release(x) // first: it may wake another process
	}
	if c.tracks {
		c.holders.remove(x)
	}
	if c.cfg.Holders {
		c.queue.jobs.sample(c.queue.clock.age() - x.began)
	}
}
