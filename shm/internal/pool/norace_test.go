//go:build !race

package pool //nolint:testpackage // the search stops the code before each access to a shared word

// anyOrder allows a switch at every step.
const anyOrder = -1
