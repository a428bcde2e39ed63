package storetest

import (
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/reference"
)

// NewReference returns a store in memory that is written to be obviously right: it keeps its
// tasks in a list, and every decision looks at all of them. The suite is proven on it, and
// [Model] compares other stores with it. The cost of a call is quadratic in the number of
// tasks.
func NewReference(cfg Config) queue.Store { return newReference(cfg) }

func newReference(cfg Config) *reference.Store {
	return reference.New(reference.Config(cfg.withDefaults()))
}

// attempts is how often a task may fail, or crash its worker, if nothing is set.
const attempts = reference.Attempts
