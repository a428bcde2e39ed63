//go:build race

package transfer_test

// linkChunks is the size of a file that is sent over a slow link, and one of linkCuts connections
// breaks. Fewer are made with the race detector: see docs/testing.md.
const (
	linkChunks = 40
	linkCuts   = 25
)
