//go:build linux && !race

package crashtest_test

// Without the race detector fewer nodes are killed: it finds more.
const (
	nodeKills     = 50 // for each database
	failoverTasks = 100_000
	disturbances  = 80 // in about 10 s
)
