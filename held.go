package stint

import (
	"slices"
	"time"

	"github.com/stintgo/stint/internal/sched"
)

// Held describes work that has slots of a scheduler with [Config.Holders].
type Held struct {
	Priority Priority  `json:"priority"`
	Key      string    `json:"key,omitempty"`
	Weight   int       `json:"weight"` // slots
	Since    time.Time `json:"since"`  // when it first got them; it may have suspended them since
}

// maxHeld is the maximum number of holders that a [Reason] names.
const maxHeld = 10

// held is the work that has slots at one moment, in the order in which it got them.
type held struct {
	all   []sched.Holder
	first []Held            // the first maxHeld of all; nil until longest is called
	of    map[string][]Held // the same by key, as far as longestOf was called
}

func heldBy(all []sched.Holder) *held {
	slices.SortFunc(all, func(a, b sched.Holder) int { return a.Since.Compare(b.Since) })
	return &held{all: all, of: make(map[string][]Held)}
}

// longest returns the work that has had slots longest.
func (h *held) longest() []Held {
	if h.first == nil {
		for _, x := range h.all[:min(len(h.all), maxHeld)] {
			h.first = append(h.first, heldOf(x))
		}
	}
	return h.first
}

// longestOf returns the work of a key that has had slots longest.
func (h *held) longestOf(key string) []Held {
	if _, known := h.of[key]; !known {
		h.of[key] = nil
		for _, x := range h.all {
			if x.Key == key && len(h.of[key]) < maxHeld {
				h.of[key] = append(h.of[key], heldOf(x))
			}
		}
	}
	return h.of[key]
}

func heldOf(x sched.Holder) Held {
	return Held{Priority: priorityOf(int(x.Tier)), Key: x.Key, Weight: int(x.Weight), Since: x.Since}
}
