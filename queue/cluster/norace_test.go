//go:build !race

package cluster_test

// contractKinds are the kinds of stores on which a follower is held to the contract of
// stores.
func contractKinds() []kind { return kinds }
