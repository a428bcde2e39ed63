//go:build !race

package pool //nolint:testpackage // the search stops the code before each access to a shared word

// anyOrder is as many switches as there are steps.
const anyOrder = -1
