//go:build race

package simulation_test

// seedsUsual is how many seeds a test tries if nobody asks for more: the race
// detector makes each of them take many times as long.
const seedsUsual = 5
