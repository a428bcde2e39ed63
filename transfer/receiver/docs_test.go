package receiver_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsNameTests: the tests that docs/receiver.md names exist.
func TestDocsNameTests(t *testing.T) {
	doc, err := os.ReadFile("../../docs/receiver.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(doc), -1)
	if len(named) == 0 {
		t.Error("docs/receiver.md names no test")
	}
	for _, test := range named {
		if !strings.Contains(code.String(), "func "+test[1]+"(t *testing.T)") {
			t.Errorf("docs/receiver.md names %s, which does not exist", test[1])
		}
	}
}
