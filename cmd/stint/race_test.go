//go:build race

package main_test

// partOfFiles says that every so manyth part of the Go source is compressed: with the
// race detector, each command takes longer to start.
const partOfFiles = 4
