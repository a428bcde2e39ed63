//go:build !race

package transfer_test

// linkChunks is the size of a file that is sent over a slow link, and one of linkCuts connections
// breaks.
const (
	linkChunks = 150
	linkCuts   = 100
)
