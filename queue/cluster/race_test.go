//go:build race

package cluster_test

// contractKinds are the kinds of stores on which a follower is held to the contract of
// stores. With the race detector one is enough: the code of the follower is the same.
func contractKinds() []kind { return kinds[1:] }
