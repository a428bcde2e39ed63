package archtest_test

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tests that exist into docs/spec.md")

const specFile = "docs/spec.md"

// rowTest is the name of a test that shows a row of the specification:
// TestA5_PerKeyConcurrency shows A5.
var rowTest = regexp.MustCompile(`^Test([A-E]\d+)_`)

// rowID is what the first cell of a row of docs/spec.md holds.
var rowID = regexp.MustCompile(`^[A-E]\d+$`)

// row is one line of a table in docs/spec.md: | id | what | state | tests |.
type row struct{ id, what, state, tests string }

func parseRow(line string) (row, bool) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	if len(cells) != 4 || !rowID.MatchString(cells[0]) {
		return row{}, false
	}
	return row{id: cells[0], what: cells[1], state: cells[2], tests: cells[3]}, true
}

func (r row) String() string {
	return strings.ReplaceAll(fmt.Sprintf("| %s | %s | %s | %s |", r.id, r.what, r.state, r.tests), "|  |", "| |")
}

// check holds the state that the document claims against the tests.
func (r row) check(tests string) error {
	shown := tests != ""
	switch state, missing, _ := strings.Cut(r.state, ": "); {
	case state != "done" && state != "part" && state != "later":
		return fmt.Errorf("its state is %q: write done, part: what is missing, or later", r.state)
	case state == "part" && missing == "":
		return fmt.Errorf("it is done in part: say after a colon what is missing")
	case state != "later" && !shown:
		return fmt.Errorf("it is %s, but there is no test named Test%s_…", state, r.id)
	case state == "later" && shown:
		return fmt.Errorf("there are tests for it (%s), so its state cannot be later", tests)
	case r.tests != tests:
		return fmt.Errorf("its tests are out of date: run go test ./internal/archtest -update")
	}
	return nil
}

func TestSpec(t *testing.T) {
	path := filepath.Join(root, specFile)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tests := testsByRow(t)
	seen := map[string]bool{}
	lines := strings.Split(string(content), "\n")
	for i, line := range lines {
		r, ok := parseRow(line)
		if !ok {
			continue
		}
		if seen[r.id] {
			t.Errorf("%s:%d: row %s stands there twice", specFile, i+1, r.id)
		}
		seen[r.id] = true
		shown := tests[r.id]
		if *update {
			r.tests = shown
			lines[i] = r.String()
		}
		if err := r.check(shown); err != nil {
			t.Errorf("%s:%d: row %s: %v", specFile, i+1, r.id, err)
		}
	}
	for id, shown := range tests {
		if !seen[id] {
			t.Errorf("%s has no row %s, but tests are named after it: %s", specFile, id, shown)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// testsByRow returns, for every row that tests are named after, the cell that
// lists them: file by file, in alphabetical order.
func testsByRow(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]map[string][]string{} // row → file → tests
	for _, f := range goFiles(t) {
		if !f.isTest() {
			continue
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil {
				continue
			}
			id := rowTest.FindStringSubmatch(fn.Name.Name)
			if id == nil {
				continue
			}
			if found[id[1]] == nil {
				found[id[1]] = map[string][]string{}
			}
			found[id[1]][f.path] = append(found[id[1]][f.path], "`"+fn.Name.Name+"`")
		}
	}
	cells := map[string]string{}
	for id, files := range found {
		var parts []string
		for _, file := range slices.SortedFunc(maps.Keys(files), cmp.Compare[string]) {
			slices.Sort(files[file])
			parts = append(parts, fmt.Sprintf("%s in [%s](../%s)", strings.Join(files[file], ", "), file, file))
		}
		cells[id] = strings.Join(parts, "; ")
	}
	return cells
}

func TestRowCheck(t *testing.T) {
	const tests = "`TestA1_Run` in [run_test.go](../run_test.go)"
	cases := []struct {
		state, listed, exist string
		ok                   bool
	}{
		{state: "done", listed: tests, exist: tests, ok: true},
		{state: "part: no shared slots", listed: tests, exist: tests, ok: true},
		{state: "later", ok: true},
		{state: "done"},
		{state: "done", listed: tests},
		{state: "done", exist: tests},
		{state: "part", listed: tests, exist: tests},
		{state: "later", listed: tests, exist: tests},
		{state: "soon"},
	}
	for _, c := range cases {
		line := row{id: "A1", what: "runs", state: c.state, tests: c.listed}.String()
		r, ok := parseRow(line)
		if !ok {
			t.Fatalf("parseRow(%q) does not see a row", line)
		}
		if err := r.check(c.exist); (err == nil) != c.ok {
			t.Errorf("%q against tests %q: %v", line, c.exist, err)
		}
	}
	for _, line := range []string{"", "| Row | What | State | Tests |", "| --- | --- | --- | --- |", "| A1 | what |"} {
		if r, ok := parseRow(line); ok {
			t.Errorf("parseRow(%q) = %v, want no row", line, r)
		}
	}
}

// isTestName reports whether go test runs a function of that name.
func isTestName(name string) bool {
	for _, prefix := range []string{"Test", "Fuzz", "Benchmark", "Example"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
