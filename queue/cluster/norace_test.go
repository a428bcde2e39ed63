//go:build !race

package cluster_test

// contractKinds are the kinds of stores on which a follower is held to the contract of
// stores. The code of the follower is the same for each, so one is enough here, and the other
// one with the race detector.
func contractKinds() []kind { return kinds[:1] }

const (
	manyHosts  = 1000 // that are simulated at most
	manyGroups = 30
	manyRounds = 12 // of deaths, with few hosts and many groups
)
