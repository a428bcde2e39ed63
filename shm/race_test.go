//go:build race

package shm_test

// killsUsual is how many processes are killed if nobody asks for more.
const killsUsual = 60
