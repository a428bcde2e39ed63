//go:build !race

package filestore_test

// eachCrash says that every so manyth crash is examined.
const eachCrash = 1
