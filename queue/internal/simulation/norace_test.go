//go:build !race

package simulation_test

// seedsUsual is the default number of seeds of a test.
const seedsUsual = 30
