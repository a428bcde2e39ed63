package queue

import (
	"time"

	"github.com/stintgo/stint"
)

// Stats counts what a store has.
type Stats struct {
	Queues  map[string]Counts `json:"queues"`
	Workers []Worker          `json:"workers,omitempty"` // that live
	Total   Total             `json:"total,omitzero"`
}

// Total is what counts for all queues together.
type Total struct {
	Running int `json:"running,omitempty"` // tasks
	// Limits are Total and TotalPerKey of the settings in force, with the origin of each.
	// From must not be changed.
	Limits Layer `json:"limits,omitzero"`
	// Keys is how many tasks run of each key that has a total of its own.
	Keys map[string]int `json:"keys,omitempty"`
}

// Counts is what there is in a queue.
type Counts struct {
	States map[State]int          `json:"states"`          // tasks by state; finished ones as long as they are kept
	Tiers  map[stint.Priority]int `json:"tiers,omitempty"` // Waiting and Held ones by tier
	// Oldest is since when the one is Waiting that has been for longest. If thousands
	// that became it before are held by their keys, it may be a time before that.
	Oldest time.Time `json:"oldest,omitzero"`
	// Damaged is how many of the Held ones are so by [HoldDamaged].
	Damaged int   `json:"damaged,omitempty"`
	Ended   Ended `json:"ended"`
	// Limits are the settings in force, with the origin of each. From must not be changed.
	Limits Layer `json:"limits,omitzero"`
	// Keys is how many tasks run of each key that has limits of its own.
	Keys map[string]int `json:"keys,omitempty"`
}

// Ended counts what has ended since the store was opened, or since the queue was made
// anew: one that has had no tasks, settings or listeners for a day may be forgotten.
type Ended struct {
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"` // attempts
	Lost      uint64 `json:"lost"`   // leases
	Dead      uint64 `json:"dead"`
	Cancelled uint64 `json:"cancelled"`
}
