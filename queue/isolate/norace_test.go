//go:build !race

package isolate_test

// room is a memory limit, in bytes, that the test binary stays below.
const room = 200 << 20
