//go:build race

package simulation_test

// seedsUsual is the default number of seeds of a test: with the race detector each of
// them takes many times as long.
const seedsUsual = 5
