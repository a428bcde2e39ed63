//go:build !race

package pool //nolint:testpackage // the search stops the code before each access to a shared word

const (
	anyOrder      = -1 // a switch at every step
	fewerSwitches = 0  // than a scenario has
)
