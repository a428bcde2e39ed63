//go:build race

package pool //nolint:testpackage // the search stops the code before each access to a shared word

// The search runs in one goroutine, so the race detector finds nothing in it, but slows it
// down. It takes fewer switches then.
const (
	anyOrder      = 1
	fewerSwitches = 1 // than a scenario has
)
