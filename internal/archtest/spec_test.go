package archtest_test

import (
	"errors"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const specFile = "docs/spec.md"

// rowTest matches the name of a test for a row of the specification:
// TestA5_AtMostPerKeyRun is for A5.
var rowTest = regexp.MustCompile(`^Test([A-E]\d+)_`)

// rowScript matches the name of a script for a row of the specification: C4_edit.txtar is
// for C4.
var rowScript = regexp.MustCompile(`^([A-E]\d+)_.*\.txtar$`)

// scriptModule has the package that runs scripts. A test file that imports it runs those
// of testdata/script in its directory.
const scriptModule = "github.com/rogpeppe/go-internal/testscript"

// rowID matches the first cell of a row of docs/spec.md.
var rowID = regexp.MustCompile(`^[A-E]\d+$`)

// row is one line of a table in docs/spec.md: | id | what | state | where it is explained |.
type row struct{ id, what, state, explained string }

func parseRow(line string) (row, bool) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	if len(cells) != 4 || !rowID.MatchString(cells[0]) {
		return row{}, false
	}
	return row{id: cells[0], what: cells[1], state: cells[2], explained: cells[3]}, true
}

// check compares the state in the document with the tests that exist.
func (r row) check(tests []string) error {
	switch state, missing, _ := strings.Cut(r.state, ": "); {
	case state != "done" && state != "part" && state != "later":
		return fmt.Errorf("its state is %q: write done, part: what is missing, or later", r.state)
	case state == "part" && missing == "":
		return errors.New("it is done in part: say after a colon what is missing")
	case state != "later" && len(tests) == 0:
		return fmt.Errorf("it is %s, but there is no test named Test%s_… and no script %s_….txtar", state, r.id, r.id)
	case state == "later" && len(tests) > 0:
		return fmt.Errorf("tests are named after it (%s), so its state cannot be later", strings.Join(tests, ", "))
	case state != "later" && r.explained == "":
		return fmt.Errorf("it is %s: say in the last column where it is explained", state)
	}
	return nil
}

func TestSpec(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, specFile))
	if err != nil {
		t.Fatal(err)
	}
	tests := testsByRow(t)
	seen := map[string]bool{}
	for i, line := range strings.Split(string(content), "\n") {
		r, ok := parseRow(line)
		if !ok {
			continue
		}
		if seen[r.id] {
			t.Errorf("%s:%d: row %s stands there twice", specFile, i+1, r.id)
		}
		seen[r.id] = true
		if err := r.check(tests[r.id]); err != nil {
			t.Errorf("%s:%d: row %s: %v", specFile, i+1, r.id, err)
		}
		t.Logf("%s %s\n\t%s", r.id, r.what, strings.Join(tests[r.id], "\n\t"))
	}
	for id, shown := range tests {
		if !seen[id] {
			t.Errorf("%s has no row %s, but tests are named after it: %s", specFile, id, strings.Join(shown, ", "))
		}
	}
}

// testsByRow returns the tests for every row by their names: functions as "file: name" in
// the order of the files, then the paths of scripts.
func testsByRow(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	for _, f := range goFiles(t) {
		if !f.isTest() {
			continue
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			if id := rowTest.FindStringSubmatch(fn.Name.Name); id != nil {
				tests[id[1]] = append(tests[id[1]], f.path+": "+fn.Name.Name)
			}
		}
	}
	for _, script := range scripts(t) {
		if id := rowScript.FindStringSubmatch(path.Base(script)); id != nil {
			tests[id[1]] = append(tests[id[1]], script)
		}
	}
	return tests
}

// scripts returns the paths of the scripts that tests run.
func scripts(t *testing.T) (paths []string) {
	t.Helper()
	for _, f := range goFiles(t) {
		if _, ok := f.imports(scriptModule); !ok || !runsScripts(f) {
			continue
		}
		dir := path.Join(path.Dir(f.path), "testdata", "script")
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(dir)))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			paths = append(paths, path.Join(dir, entry.Name()))
		}
	}
	return paths
}

// runsScripts reports whether a file calls testscript.Run.
func runsScripts(f *goFile) bool {
	runs := false
	for _, decl := range f.ast.Decls {
		runs = runs || len(usesOf(f, decl, habit{pkg: scriptModule, names: []string{"Run"}})) > 0
	}
	return runs
}

func TestRowCheck(t *testing.T) {
	tests := []string{"run_test.go: TestA1_Run"}
	cases := []struct {
		state, explained string
		tests            []string
		ok               bool
	}{
		{state: "done", explained: "[run.go](../run.go)", tests: tests, ok: true},
		{state: "part: no shared slots", explained: "[run.go](../run.go)", tests: tests, ok: true},
		{state: "later", ok: true},
		{state: "done", explained: "[run.go](../run.go)"},
		{state: "done", tests: tests},
		{state: "part", explained: "[run.go](../run.go)", tests: tests},
		{state: "later", tests: tests},
		{state: "soon"},
	}
	for _, c := range cases {
		line := fmt.Sprintf("| A1 | runs | %s | %s |", c.state, c.explained)
		r, ok := parseRow(line)
		if !ok {
			t.Fatalf("parseRow(%q) does not see a row", line)
		}
		if err := r.check(c.tests); (err == nil) != c.ok {
			t.Errorf("%q with tests %q: %v", line, c.tests, err)
		}
	}
	for _, line := range []string{
		"", "| Row | What | State | Explained in |", "| --- | --- | --- | --- |", "| A1 | what |",
	} {
		if r, ok := parseRow(line); ok {
			t.Errorf("parseRow(%q) = %v, want no row", line, r)
		}
	}
}

// isTestName reports whether go test runs a function with that name.
func isTestName(name string) bool {
	for _, prefix := range []string{"Test", "Fuzz", "Benchmark", "Example"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
