package storetest

import "github.com/stintgo/stint/queue"

// Reopened returns a naive store that has what is left of one when its process
// ends.
func Reopened(store queue.Store) queue.Store { return store.(*naive).reopened() }
