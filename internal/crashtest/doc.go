// Package crashtest kills the processes of a durable queue, and looks at what is
// left. It has tests only: a server with its store in a directory, workers that
// reach it through a socket, and the test that starts them, kills them with -9 or
// stops them at random, and holds the store against two records that no crash
// takes away: what submitters were told, and what handlers wrote down when they
// began and ended.
package crashtest
