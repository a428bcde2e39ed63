//go:build race

package isolate_test

// room is a limit on memory that the test binary lives with. The race detector
// asks for much that it does not use.
const room = 400 << 20
