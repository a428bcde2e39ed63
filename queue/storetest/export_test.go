package storetest

import (
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/reference"
)

// Reopened returns a reference store that has what is left of one when its process
// ends.
func Reopened(store queue.Store) queue.Store { return store.(*reference.Store).Reopen() }
