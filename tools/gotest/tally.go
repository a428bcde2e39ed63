package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is one line of go test -json; see go doc test2json.
type event struct {
	Action     string
	Package    string
	Test       string
	Output     string
	ImportPath string
}

// test names one test of one package.
type test struct{ pkg, name string }

// tally counts the outcomes of tests, subtests included, and shows what a
// person needs: a line per package, and all that a failed test had to say.
type tally struct {
	w              io.Writer
	passed, failed int
	failures       []string
	said           map[test]*bytes.Buffer // output of the tests that still run
	bad            map[string]bool        // packages with a failure that is counted
}

func newTally(w io.Writer) *tally {
	return &tally{w: w, said: map[test]*bytes.Buffer{}, bad: map[string]bool{}}
}

// line takes one line of output. What is not an event is shown as it is: the
// go command says some things before the first test starts.
func (t *tally) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		t.show(line)
		return
	}
	t.event(e)
}

func (t *tally) event(e event) {
	switch e.Action {
	case "build-output":
		t.show([]byte(e.Output))
	case "output":
		t.output(e)
	case "pass":
		t.pass(e)
	case "fail":
		t.fail(e, "failed")
	case "skip":
		// The package-level event stands for "no test files". A test that
		// skips itself has shown nothing, and must not count as if it had.
		if e.Test != "" {
			t.fail(e, "skipped")
		}
	}
}

// output keeps what a test says until its outcome is known, and shows what
// the package says.
func (t *tally) output(e event) {
	if e.Test == "" {
		if e.Output != "PASS\n" {
			t.show([]byte(e.Output))
		}
		return
	}
	if strings.HasPrefix(e.Output, "=== ") {
		return // the start of the test, which its failure names as well
	}
	key := test{e.Package, e.Test}
	if t.said[key] == nil {
		t.said[key] = &bytes.Buffer{}
	}
	t.said[key].WriteString(e.Output)
}

func (t *tally) pass(e event) {
	if e.Test == "" {
		return
	}
	t.passed++
	delete(t.said, test{e.Package, e.Test})
}

func (t *tally) fail(e event, how string) {
	if e.Test == "" {
		// A package fails because of a test, which is counted, or without one:
		// it did not build, timed out or left through os.Exit.
		if !t.bad[e.Package] {
			t.count(e.Package, e.Package+" "+how)
			t.showUnfinished(e.Package)
		}
		return
	}
	t.count(e.Package, e.Package+"."+e.Test+" "+how)
	key := test{e.Package, e.Test}
	if said := t.said[key]; said != nil {
		t.show(said.Bytes())
		delete(t.said, key)
	}
}

// showUnfinished shows what the tests said that were running when their
// package ended: the stacks are among it if it was for too long.
func (t *tally) showUnfinished(pkg string) {
	for key, said := range t.said {
		if key.pkg == pkg {
			t.show(said.Bytes())
			delete(t.said, key)
		}
	}
}

// broken records that go test could not run in a module.
func (t *tally) broken(dir string, err error) {
	t.count(dir, fmt.Sprintf("go test in %s: %v", dir, err))
}

func (t *tally) count(pkg, failure string) {
	t.failed++
	t.bad[pkg] = true
	t.failures = append(t.failures, failure)
}

// report prints the closing lines and tells whether all is well. A run that
// found no test is not: a pattern that matches nothing must not look green.
func (t *tally) report() bool {
	var text bytes.Buffer
	for _, failure := range t.failures {
		fmt.Fprintln(&text, failure)
	}
	if t.passed+t.failed == 0 {
		fmt.Fprintln(&text, "no test ran")
	}
	fmt.Fprintf(&text, "%d passed, %d failed\n", t.passed, t.failed)
	t.show(text.Bytes())
	return t.failed == 0 && t.passed > 0
}

// show writes to the terminal or the log, where a failed write leaves nobody
// to tell.
func (t *tally) show(text []byte) { _, _ = t.w.Write(text) }
