//go:build !race

package main_test

// partOfFiles is 1: the whole Go source is compressed.
const partOfFiles = 1
