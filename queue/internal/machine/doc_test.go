package machine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// doc.go describes each file, and names no file that does not exist.
func TestDocNamesEachFile(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]bool)
	for line := range strings.Lines(string(doc)) {
		if rest, ok := strings.CutPrefix(line, "//   - "); ok {
			name, _, _ := strings.Cut(rest, ":")
			named[name] = true
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "doc.go" {
			continue
		}
		if !named[file] {
			t.Errorf("doc.go does not say what %s does", file)
		}
		delete(named, file)
	}
	for name := range named {
		t.Errorf("doc.go names %s, which is not there", name)
	}
}
