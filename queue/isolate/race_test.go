//go:build race

package isolate_test

// room is a memory limit, in bytes, that the test binary stays below. The race detector
// reserves much memory that it does not use.
const room = 400 << 20
