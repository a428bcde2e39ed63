// Package crashtest kills the processes of a durable queue and checks the store
// afterwards. It has only tests: a server with its store in a directory, workers that
// reach it through a socket, and the test that starts them, and kills (-9) or stops them
// at random. It compares the store with two records that no crash loses: the receipts of
// submitters, and the log of handlers, which they write when they begin and end.
package crashtest
