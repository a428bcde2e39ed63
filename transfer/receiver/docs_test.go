package receiver_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stintgo/stint/transfer/receiver"
)

func readDoc(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/receiver.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// TestDocsNameTests: the tests that docs/receiver.md names exist, here or with the clients.
func TestDocsNameTests(t *testing.T) {
	var code strings.Builder
	for _, pattern := range []string{"*_test.go", "../*_test.go", "../../cmd/stint/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(readDoc(t), -1)
	if len(named) == 0 {
		t.Error("docs/receiver.md names no test")
	}
	for _, test := range named {
		if !strings.Contains(code.String(), "func "+test[1]+"(t *testing.T)") {
			t.Errorf("docs/receiver.md names %s, which does not exist", test[1])
		}
	}
}

// rows returns the cells of the tables of a section of a document, without their headings.
func rows(t *testing.T, doc, section string) (all [][]string) {
	t.Helper()
	_, text, ok := strings.Cut(doc, "\n"+section+"\n")
	if !ok {
		t.Fatalf("docs/receiver.md has no section %q", section)
	}
	level, _, _ := strings.Cut(section, " ")
	text, _, _ = strings.Cut(text, "\n"+level+" ")
	for _, line := range regexp.MustCompile("(?m)^\\|-.*\n((?:\\|.*\n)+)").FindAllStringSubmatch(text, -1) {
		for row := range strings.Lines(line[1]) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), " | ")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			all = append(all, cells)
		}
	}
	if len(all) == 0 {
		t.Fatalf("section %q has no table", section)
	}
	return all
}

// TestDocsConform: each row of the protocols names its test, each cell of the conformance tables
// names one or is a dash, and the extensions that OPTIONS announces are the rows of that of tus.
func TestDocsConform(t *testing.T) {
	doc, test := readDoc(t), regexp.MustCompile("^`Test[A-Za-z0-9_]+`(, `Test[A-Za-z0-9_]+`)*$")
	for _, section := range []string{"## tus 1.0.0", "## The IETF draft", "## Plain calls"} {
		for _, row := range rows(t, doc, section) {
			if !test.MatchString(row[len(row)-1]) {
				t.Errorf("%s: %q names no test", section, row)
			}
		}
	}
	for _, section := range []string{"### tus", "### IETF draft", "### Plain"} {
		for _, row := range rows(t, doc, section) {
			if !test.MatchString(row[1]) {
				t.Errorf("%s: %q names no test", section, row)
			}
			for _, cell := range row[2:] {
				if cell != "–" && !test.MatchString(cell) {
					t.Errorf("%s: %q has the cell %q", section, row, cell)
				}
			}
		}
	}
	s := open(t, receiver.Config{})
	announced := strings.Split(s.want(s.do("OPTIONS", s.url, nil), 204).Header.Get("Tus-Extension"), ",")
	documented := []string{}
	for _, row := range rows(t, doc, "### tus")[1:] { // without the core
		documented = append(documented, row[0])
	}
	slices.Sort(announced)
	slices.Sort(documented)
	if !slices.Equal(announced, documented) {
		t.Errorf("the extensions are %q, and docs/receiver.md has rows for %q", announced, documented)
	}
}
