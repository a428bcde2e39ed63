package archtest_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// root is the top of the repository, relative to this package.
const root = "../.."

// module is the import path of the repository's main module.
const module = "github.com/stintgo/stint"

// goFile is a parsed file of any module of the repository.
type goFile struct {
	path string // relative to root, with slashes
	ast  *ast.File
	fset *token.FileSet
}

func (f *goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// at returns a node's position in the form that editors understand.
func (f *goFile) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(n.Pos()).Line)
}

// imports returns the file's name for the package path, and whether it imports it.
func (f *goFile) imports(path string) (name string, ok bool) {
	for _, spec := range f.ast.Imports {
		if strings.Trim(spec.Path.Value, `"`) != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name, true
		}
		return path[strings.LastIndex(path, "/")+1:], true
	}
	return "", false
}

// goFiles returns every Go file of the repository, parsed once for all tests.
func goFiles(t *testing.T) []*goFile {
	t.Helper()
	files, err := parseTree()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parse(fset *token.FileSet, path string, src []byte) (*goFile, error) {
	parsed, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	return &goFile{path: path, ast: parsed, fset: fset}, err
}

// hold checks every Go file of the repository against a rule, which returns readable
// violations.
func hold(t *testing.T, rule func(*goFile) []string) {
	t.Helper()
	for _, f := range goFiles(t) {
		for _, broken := range rule(f) {
			t.Error(broken)
		}
	}
}

var parseTree = sync.OnceValues(func() ([]*goFile, error) {
	var files []*goFile
	fset := token.NewFileSet()
	err := walk(func(path string, src []byte) error {
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parse(fset, path, src)
		files = append(files, f)
		return err
	})
	return files, err
})

// walk calls visit for every file of the project. It reads the directories and does not
// use git, so that it works on an unpacked archive and sees new files.
func walk(visit func(path string, content []byte) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(path, d.Name())
		}
		if !d.Type().IsRegular() || d.Name() == ".git" { // a file in a second work tree
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(rel), content)
	})
}

// skipDir skips git's data, build output, and test data, which may be invalid on purpose.
func skipDir(path, name string) error {
	switch {
	case name == ".git", name == "testdata":
		return filepath.SkipDir
	case path == filepath.Join(root, "bin"), path == filepath.Join(root, "out"):
		return filepath.SkipDir
	}
	return nil
}

// TestTree checks that the other tests see the repository: over an empty tree they would
// all pass.
func TestTree(t *testing.T) {
	want := "internal/archtest/tree_test.go"
	for _, f := range goFiles(t) {
		if f.path == want {
			return
		}
	}
	t.Errorf("%s is not among the %d files found under %s", want, len(goFiles(t)), root)
}
