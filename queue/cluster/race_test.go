//go:build race

package cluster_test

// contractKinds are the kinds of stores on which a follower is held to the contract of
// stores: those that it is not held to without the race detector.
func contractKinds() []kind { return kinds[1:] }

// The simulation is smaller: the race detector needs minutes for 1,000 hosts.
const (
	manyHosts  = 100
	manyGroups = 10
	manyRounds = 3
)
