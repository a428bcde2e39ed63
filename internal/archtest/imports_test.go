package archtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// state tells whether a package is there. The table holds the decision for
// those that are not, too, so that they start in the right direction.
type state bool

const (
	here    state = true
	planned state = false
)

// direction is one row of the architecture: a package, and all that it may
// import besides the standard library.
type direction struct {
	pkg     string // from the module's root; "." is the root, "x/..." includes what is below
	state   state
	may     []string // packages of this module
	modules []string // modules of others
}

// directions is the architecture. An arrow that is not here does not exist;
// read it from the top to see what stands on what.
//
//	internal/backlog ← stint ← shm, queue ← stores, transfer ← server ← cmd
//
// csync and retry stand alone, so that they can be used without the rest.
var directions = []direction{
	{pkg: "internal/backlog", state: here},
	{pkg: "csync", state: here},
	{pkg: "retry", state: here},
	{pkg: ".", state: here, may: []string{"internal/backlog"}},

	{pkg: "shm", state: planned, may: []string{"."}, modules: []string{"golang.org/x/sys"}},
	{pkg: "queue", state: planned, may: []string{".", "internal/backlog", "retry"}, modules: []string{"github.com/google/uuid"}},
	{pkg: "queue/storetest", state: planned, may: []string{".", "queue"}},
	{pkg: "queue/queuetest", state: planned, may: []string{".", "queue", "queue/memstore"}},

	// No store imports another, but for the two that share one state machine.
	{pkg: "queue/memstore", state: planned, may: []string{".", "queue", "internal/backlog"}},
	{
		pkg: "queue/filestore", state: planned,
		may:     []string{".", "queue", "queue/memstore"},
		modules: []string{"github.com/cockroachdb/pebble/v2"},
	},
	{pkg: "queue/pgstore", state: planned, may: []string{".", "queue"}, modules: []string{"github.com/jackc/pgx/v5"}},
	{pkg: "queue/redisstore", state: planned, may: []string{".", "queue"}},

	{pkg: "transfer", state: planned, may: []string{".", "queue", "retry"}},
	{pkg: "server", state: planned, may: []string{".", "queue", "transfer", "server/web"}},
	{pkg: "server/web", state: planned},

	// The program is the only one that knows every store.
	{pkg: "cmd/...", state: here, may: []string{"..."}, modules: []string{"..."}},

	// Nobody imports this package; it looks at the others from outside.
	{pkg: "internal/archtest", state: here},
}

// testModules are the modules of others that any test may import.
var testModules = []string{"github.com/google/go-cmp"}

// pkg is what go list tells of a package.
type pkg struct {
	ImportPath   string
	Standard     bool
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestImports(t *testing.T) {
	seen := map[string]bool{}
	// A file for another system is not in the build of this one, so each is
	// asked for. -find reads the imports without loading what they lead to.
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, p := range goList(t, system, "-find", "./...") {
			d := directionOf(rel(p.ImportPath))
			if d == nil {
				t.Errorf("%s is not in the table of internal/archtest/imports_test.go: "+
					"add a row that says what it may import, and why it has to exist", p.ImportPath)
				continue
			}
			seen[d.pkg] = true
			checkImports(t, d, p)
		}
	}
	for _, d := range directions {
		if seen[d.pkg] != bool(d.state) {
			t.Errorf("the row of %s in internal/archtest/imports_test.go is out of date: "+
				"`here` is for packages that exist, `planned` for those that do not", d.pkg)
		}
	}
}

func checkImports(t *testing.T, d *direction, p pkg) {
	t.Helper()
	for _, path := range p.Imports {
		if !mayImport(path, d.may, d.modules) {
			t.Errorf("%s imports %s, which its row in internal/archtest/imports_test.go does not allow: "+
				"move the code to where it may be, or let the importer define the interface it needs",
				p.ImportPath, path)
		}
	}
	// Tests may look at the whole module: the compiler refuses cycles.
	for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
		if !mayImport(path, []string{"..."}, slices.Concat(d.modules, testModules)) {
			t.Errorf("tests of %s import %s: use the standard library, "+
				"or argue for the module in testModules of internal/archtest/imports_test.go", p.ImportPath, path)
		}
	}
}

// TestRootIsStandardLibraryOnly asks the compiler's own list what a program
// that imports the library compiles.
func TestRootIsStandardLibraryOnly(t *testing.T) {
	for _, name := range []string{".", "./csync", "./retry"} {
		for _, p := range goList(t, "linux", "-deps", name) {
			if !p.Standard && !inModule(p.ImportPath) {
				t.Errorf("importing %s compiles %s: the library stands on the standard library alone",
					strings.Replace(name, ".", module, 1), p.ImportPath)
			}
		}
	}
}

func TestMayImport(t *testing.T) {
	tests := []struct {
		path    string
		may     []string
		modules []string
		want    bool
	}{
		{path: "net/http", want: true},
		{path: "C"},
		{path: module, may: []string{"."}, want: true},
		{path: module, may: []string{"csync"}},
		{path: module + "/csync", may: []string{"csync"}, want: true},
		{path: module + "/csync/deep", may: []string{"csync"}},
		{path: module + "/csync/deep", may: []string{"csync/..."}, want: true},
		{path: module + "/csync", may: []string{"..."}, want: true},
		{path: module + "x/y", may: []string{"..."}},
		{path: "github.com/spf13/cobra", may: []string{"..."}},
		{path: "github.com/spf13/cobra/doc", modules: []string{"github.com/spf13/cobra"}, want: true},
		{path: "github.com/spf13/cobra", modules: []string{"..."}, want: true},
	}
	for _, test := range tests {
		if got := mayImport(test.path, test.may, test.modules); got != test.want {
			t.Errorf("mayImport(%q, %q, %q) = %t, want %t", test.path, test.may, test.modules, got, test.want)
		}
	}
}

func mayImport(path string, may, modules []string) bool {
	switch {
	case path == "C":
		return false // a library that needs a C compiler is no longer one go get away
	case inModule(path):
		return slices.ContainsFunc(may, func(pattern string) bool { return matches(pattern, rel(path)) })
	case !strings.Contains(strings.Split(path, "/")[0], "."):
		return true // only the standard library's paths start without a host
	}
	return slices.ContainsFunc(modules, func(m string) bool {
		return m == "..." || path == m || strings.HasPrefix(path, m+"/")
	})
}

// matches reports whether name is pattern, or lies below it if that ends in
// "...".
func matches(pattern, name string) bool {
	above, wild := strings.CutSuffix(pattern, "...")
	if !wild {
		return pattern == name
	}
	return strings.HasPrefix(name+"/", above)
}

func directionOf(name string) *direction {
	i := slices.IndexFunc(directions, func(d direction) bool { return matches(d.pkg, name) })
	if i < 0 {
		return nil
	}
	return &directions[i]
}

func inModule(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// rel shortens an import path of this module to its directory: "." is the
// root.
func rel(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// goList asks the go command about packages of the main module as they are
// built on the given system.
func goList(t *testing.T, system string, args ...string) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", slices.Concat([]string{
		"list", "-json=ImportPath,Standard,Imports,TestImports,XTestImports",
	}, args)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, exit.Stderr)
		}
		t.Fatal(err)
	}
	pkgs := map[string]pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return slices.Collect(maps.Values(pkgs))
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs[p.ImportPath] = p
	}
}
