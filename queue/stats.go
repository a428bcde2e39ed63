package queue

import (
	"time"

	"github.com/stintgo/stint"
)

// Stats are the counts of a store.
type Stats struct {
	Queues  map[string]Counts `json:"queues"`
	Workers []Worker          `json:"workers,omitempty"` // whose heartbeats are recent
	Total   Total             `json:"total,omitzero"`
	// Refuses is why tasks are refused at present, for example because a disk is full; "" if
	// they are accepted.
	Refuses string `json:"refuses,omitempty"`
	// Lead is about the process that leads a store on a database server; nil for other
	// stores, or if it is not known.
	Lead *Lead `json:"lead,omitempty"`
	// Nodes are the processes that share a store on a database server, by name; nil for
	// other stores. A process that has gone is listed for some seconds longer.
	Nodes []Node `json:"nodes,omitempty"`
	// Groups are the groups of queues, each with a leader of its own; nil if there is one.
	Groups []Group `json:"groups,omitempty"`
}

// Group is a group of queues with a store and a leader of its own. It is not the FIFO group
// of [Options.Group].
type Group struct {
	Name   string   `json:"name"`
	Queues []string `json:"queues,omitempty"` // empty for the default group, which has all other queues
	Lead   *Lead    `json:"lead,omitempty"`   // nil if it is not known
}

// Node is a process that shares a store on a database server.
type Node struct {
	Name    string `json:"name"`
	Address string `json:"address"` // the host:port by which the other nodes reach it
	// Seen is when the leader last received a call from it. A node that works calls the leader every 3 s.
	Seen time.Time `json:"seen,omitzero"`
}

// Lead is which process leads a store, and since when.
type Lead struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
}

// Total has the limits of all queues together, and the tasks that count against them.
type Total struct {
	Running int `json:"running,omitempty"` // tasks
	// Limits are Total and TotalPerKey of the settings in force, with the origin of each.
	// From must not be changed.
	Limits Layer `json:"limits,omitzero"`
	// Keys has the number of running tasks of each key that has a total of its own.
	Keys map[string]int `json:"keys,omitempty"`
}

// Counts are the counts of a queue.
type Counts struct {
	States map[State]int          `json:"states"`          // tasks by state; finished tasks as long as they are kept
	Tiers  map[stint.Priority]int `json:"tiers,omitempty"` // Waiting and Held tasks by tier
	// Oldest is since when the oldest Waiting task has been Waiting. If thousands of
	// earlier tasks are held by their keys, it may be an earlier time.
	Oldest time.Time `json:"oldest,omitzero"`
	// Damaged is the number of tasks that are Held by [HoldDamaged].
	Damaged int   `json:"damaged,omitempty"`
	Ended   Ended `json:"ended"`
	// Limits are the settings in force, with the origin of each. From must not be changed.
	Limits Layer `json:"limits,omitzero"`
	// Keys has the number of running tasks of each key that has limits of its own in this
	// queue, and of each key that has them under the queue "", if a task of it runs here.
	Keys map[string]int `json:"keys,omitempty"`
}

// Ended are counts since the store was opened, or since the queue was created again: a
// queue without tasks, settings and listeners for a day may be forgotten.
type Ended struct {
	Succeeded uint64 `json:"succeeded"`
	Failed    uint64 `json:"failed"` // attempts
	Lost      uint64 `json:"lost"`   // leases
	Dead      uint64 `json:"dead"`
	Cancelled uint64 `json:"cancelled"`
}
