//go:build race

package pool //nolint:testpackage // the search stops the code before each access to a shared word

// anyOrder is as many switches as the race detector leaves time for: it instruments
// the search, which runs in one goroutine.
const anyOrder = 1
