package archtest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
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
//	internal/backlog ← internal/sched ← stint ← shm, queue ← stores, transfer ← server ← cmd
//
// csync and retry stand alone, so that they can be used without the rest.
var directions = []direction{
	// Maps and slices that give memory back.
	{pkg: "internal/shrink", state: here},
	{pkg: "internal/backlog", state: here, may: []string{"internal/shrink"}},
	{pkg: "internal/bucket", state: here, may: []string{"internal/shrink"}},
	{pkg: "csync", state: here},
	{pkg: "retry", state: here},
	{pkg: "internal/sched", state: here, may: []string{"internal/backlog"}},
	{pkg: ".", state: here, may: []string{"internal/backlog", "internal/bucket", "internal/sched"}},

	// Keeps a log readable while one error repeats.
	{pkg: "internal/logthrottle", state: here},

	// Times, and nothing that runs: a part of queue that others may use alone.
	{pkg: "queue/cron", state: here},

	// The protocol, and the memory that it is spoken in, know nothing of each other.
	{pkg: "shm/internal/pool", state: here},
	{pkg: "shm/internal/arena", state: here, modules: []string{"golang.org/x/sys"}},
	{pkg: "shm", state: here, may: []string{".", "internal/bucket", "shm/internal/pool", "shm/internal/arena"}},
	{
		pkg: "queue", state: here,
		may: []string{".", "internal/backlog", "internal/logthrottle", "retry", "queue/cron"},
	},
	// How rows are written down: for stores that keep bytes.
	{pkg: "queue/internal/record", state: here, may: []string{".", "queue"}},
	// Group commit of rows: it knows neither tasks nor the machine.
	{pkg: "queue/internal/journal", state: here, may: []string{"queue", "internal/shrink"}},
	{pkg: "queue/storetest", state: here, may: []string{".", "queue", "internal/seeded"}},
	{pkg: "queue/queuetest", state: here, may: []string{".", "queue", "queue/memstore"}},

	// No store imports another; two share one state machine.
	{
		pkg: "queue/internal/machine", state: here,
		may: []string{
			".", "queue", "queue/internal/journal", "queue/internal/record", "internal/backlog", "internal/shrink",
		},
	},
	{pkg: "queue/memstore", state: here, may: []string{"queue", "queue/internal/machine"}},
	// Which users of the machine a program trusts with its files, and with its sockets.
	{pkg: "internal/ownership", state: here},
	{pkg: "internal/peer", state: here},
	{
		pkg: "queue/filestore", state: here,
		may:     []string{"queue", "queue/internal/machine", "internal/logthrottle", "internal/ownership"},
		modules: []string{"github.com/cockroachdb/pebble/v2"},
	},
	{pkg: "queue/pgstore", state: planned, may: []string{".", "queue"}, modules: []string{"github.com/jackc/pgx/v5"}},
	{pkg: "queue/redisstore", state: planned, may: []string{".", "queue"}},
	// A store that is in another process, and what it says to that process.
	{pkg: "queue/httpstore", state: here, may: []string{"queue", "internal/wire", "internal/peer"}},
	{pkg: "internal/wire", state: here, may: []string{"queue"}},

	{pkg: "transfer", state: planned, may: []string{".", "queue", "retry"}},
	{
		pkg: "server", state: here,
		may: []string{".", "csync", "queue", "internal/wire", "internal/peer", "transfer", "server/web"},
	},
	{pkg: "server/web", state: planned},

	// Processes, and who ends them when the one that has started them cannot.
	{pkg: "internal/proc", state: here, modules: []string{"golang.org/x/sys"}},
	{pkg: "internal/watcher", state: here, may: []string{"internal/proc"}, modules: []string{"golang.org/x/sys"}},
	{
		pkg: "queue/isolate", state: here,
		may:     []string{"queue", "retry", "internal/proc", "internal/watcher"},
		modules: []string{"golang.org/x/sys"},
	},
	// Tests alone: what happens to a queue, as seeds have it.
	{pkg: "queue/internal/simulation", state: here},

	// The program is the only one that knows every store.
	{pkg: "cmd/...", state: here, may: []string{"..."}, modules: []string{"..."}},

	// Kills processes that use the queue.
	{pkg: "internal/crashtest", state: here, modules: []string{"golang.org/x/sys"}},

	// The randomness of tests.
	{pkg: "internal/seeded", state: here},

	// What every implementation of stint.Slots is tested with.
	{pkg: "internal/slotstest", state: here, may: []string{"."}},
	{pkg: "internal/buckettest", state: here, may: []string{".", "internal/bucket"}},

	// Programs to read and to copy: they use what any user has.
	{pkg: "examples/fileserver", state: here, may: []string{".", "shm"}},

	// Nobody imports this package; it looks at the others from outside.
	{pkg: "internal/archtest", state: here},
}

// testModules are the modules of others that any test may import.
var testModules = []string{"github.com/google/go-cmp"}

// TestImports reads the files and does not ask the go command, so that it sees
// those for other systems and behind build tags as well.
func TestImports(t *testing.T) {
	hold(t, forbiddenImports)

	seen := map[string]bool{}
	for _, f := range goFiles(t) {
		if d := directionOf(path.Dir(f.path)); d != nil && inMainModule(f.path) {
			seen[d.pkg] = true
		}
	}
	for _, d := range directions {
		if seen[d.pkg] != bool(d.state) {
			t.Errorf("the row of %s in internal/archtest/imports_test.go is out of date: "+
				"`here` is for packages that exist, `planned` for those that do not", d.pkg)
		}
	}
}

func forbiddenImports(f *goFile) (forbidden []string) {
	if !inMainModule(f.path) {
		return nil
	}
	d := directionOf(path.Dir(f.path))
	if d == nil {
		return []string{f.path + " belongs to a package that is not in the table of internal/archtest/imports_test.go: " +
			"add a row that says what it may import, and why it has to exist"}
	}
	may, modules := d.may, d.modules
	advice := "move the code to where it may be, or let the importer define the interface it needs"
	if f.isTest() {
		// Tests may look at the whole module: the compiler refuses cycles.
		may, modules = []string{"..."}, slices.Concat(d.modules, testModules)
		advice = "use the standard library, or argue for the module in testModules there"
	}
	for _, spec := range f.ast.Imports {
		if name := strings.Trim(spec.Path.Value, `"`); !mayImport(name, may, modules) {
			forbidden = append(forbidden,
				fmt.Sprintf("%s imports %s, which the table of internal/archtest/imports_test.go does not allow: %s",
					f.at(spec), name, advice))
		}
	}
	return forbidden
}

// inMainModule tells the files of the main module from those of the modules
// nested in the repository, which nobody can import.
func inMainModule(file string) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			return false
		}
	}
	return true
}

// TestRootIsStandardLibraryOnly asks the compiler's own list what a program
// that imports the library compiles.
func TestRootIsStandardLibraryOnly(t *testing.T) {
	for _, name := range []string{".", "./csync", "./retry"} {
		for _, p := range dependencies(t, name) {
			if !p.Standard && !inModule(p.ImportPath) {
				t.Errorf("importing %s compiles %s: the library stands on the standard library alone",
					strings.Replace(name, ".", module, 1), p.ImportPath)
			}
		}
	}
}

func TestMayImport(t *testing.T) {
	tests := []struct {
		name    string
		may     []string
		modules []string
		want    bool
	}{
		{name: "net/http", want: true},
		{name: "C"},
		{name: module, may: []string{"."}, want: true},
		{name: module, may: []string{"csync"}},
		{name: module + "/csync", may: []string{"csync"}, want: true},
		{name: module + "/csync/deep", may: []string{"csync"}},
		{name: module + "/csync/deep", may: []string{"csync/..."}, want: true},
		{name: module + "/csync", may: []string{"..."}, want: true},
		{name: module + "x/y", may: []string{"..."}},
		{name: "github.com/spf13/cobra", may: []string{"..."}},
		{name: "github.com/spf13/cobra/doc", modules: []string{"github.com/spf13/cobra"}, want: true},
		{name: "github.com/spf13/cobra", modules: []string{"..."}, want: true},
	}
	for _, test := range tests {
		if got := mayImport(test.name, test.may, test.modules); got != test.want {
			t.Errorf("mayImport(%q, %q, %q) = %t, want %t", test.name, test.may, test.modules, got, test.want)
		}
	}
}

func mayImport(name string, may, modules []string) bool {
	switch {
	case name == "C":
		return false // a library that needs a C compiler is no longer one go get away
	case inModule(name):
		return slices.ContainsFunc(may, func(pattern string) bool { return matches(pattern, rel(name)) })
	case !strings.Contains(strings.Split(name, "/")[0], "."):
		return true // only the standard library's paths start without a host
	}
	return slices.ContainsFunc(modules, func(m string) bool {
		return m == "..." || name == m || strings.HasPrefix(name, m+"/")
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

func inModule(name string) bool { return name == module || strings.HasPrefix(name, module+"/") }

// rel shortens an import path of this module to its directory: "." is the
// root.
func rel(name string) string {
	if name == module {
		return "."
	}
	return strings.TrimPrefix(name, module+"/")
}

// dependency is what go list tells of a package.
type dependency struct {
	ImportPath string
	Standard   bool
}

// dependencies lists all that building a package compiles.
func dependencies(t *testing.T, name string) []dependency {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard", name)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	var all []dependency
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var d dependency
		if err := dec.Decode(&d); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}
