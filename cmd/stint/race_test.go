//go:build race

package main_test

// partOfFiles says that every so manyth part of the Go source is compressed: the race
// detector makes each of the commands that start take twice as long.
const partOfFiles = 4
