//go:build !race

package shm_test

// killsUsual is the number of processes to kill if STINT_SEEDS is not set.
const killsUsual = 300
