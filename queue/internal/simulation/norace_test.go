//go:build !race

package simulation_test

// seedsUsual is how many seeds a test tries if nobody asks for more.
const seedsUsual = 30
