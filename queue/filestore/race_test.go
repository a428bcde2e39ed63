//go:build race

package filestore_test

// eachCrash says that every so manyth crash is examined: with the race detector
// Pebble checks itself, and takes a stack for each table that it reads.
const eachCrash = 20
