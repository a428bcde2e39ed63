//go:build linux && race

package crashtest_test

// With the race detector most of the nodes are killed, and a failover, which takes as long as
// the machine is slow, has few tasks.
const (
	nodeKills     = 100 // for each database
	failoverTasks = 10_000
	disturbances  = 40 // in about 5 s
)
