package archtest_test

import (
	"fmt"
	"testing"
)

// A file is one type or one loop, to be understood in one sitting. When it
// grows past these lines it is telling of a concept that has no name yet. (The
// length of functions is the linter's: funlen in .golangci.yml.)
const (
	fileLinesMax     = 400
	testFileLinesMax = 600 // tables of cases are long and easy to read
)

// longFiles lists files that may be longer, and why.
var longFiles = map[string]string{}

func TestFileSizes(t *testing.T) { hold(t, tooLong) }

func tooLong(f *goFile) []string {
	limit := fileLinesMax
	if f.isTest() {
		limit = testFileLinesMax
	}
	if f.lines <= limit || longFiles[f.path] != "" {
		return nil
	}
	return []string{fmt.Sprintf(
		"%s has %d lines, more than %d: find the second concept in it and give that a file of its own",
		f.path, f.lines, limit)}
}
