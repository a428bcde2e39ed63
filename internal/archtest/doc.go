// Package archtest checks the rules of the project as tests: which package may import
// which, how tests may wait, that each row of the specification has tests, and that the
// documents are true.
//
// It has no code of its own. A failing test says what to do; the tables at the head of
// its files are the decisions, each with its reason:
//
//	imports_test.go  the architecture: which package may import which
//	habits_test.go   what a test may not do
//	errors_test.go   what a sentinel error owes its reader
//	words_test.go    what may not stand in any file
//	spec_test.go     docs/spec.md: each row has tests
//	wrappers_test.go what a type that embeds a store may leave to that store
//	docs_test.go     links that lead somewhere, quick starts that run, lists of files
//	rules_test.go    that these rules bite
package archtest
