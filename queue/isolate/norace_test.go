//go:build !race

package isolate_test

// room is a limit on memory that the test binary lives with.
const room = 200 << 20
