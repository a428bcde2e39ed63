package storetest

import (
	"maps"
	"slices"

	"github.com/stintgo/stint/queue"
)

// Recovered returns a naive store that has what is left of one when it crashes,
// if all of its tasks are durable: not who worked for it, nor what rates have
// spent, nor who watched.
func Recovered(store queue.Store) queue.Store {
	old := store.(*naive)
	old.mu.Lock()
	defer old.mu.Unlock()
	n := newNaive(old.cfg)
	n.now, n.submits, n.endings, n.tokens = old.now, old.submits, old.endings, old.tokens
	n.settings = maps.Clone(old.settings)
	for _, r := range old.rows {
		again := *r
		again.Steps = slices.Clone(r.Steps)
		n.rows = append(n.rows, &again)
		n.queue(r.Queue)
	}
	old.closed = true
	return n
}
