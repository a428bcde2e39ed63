package archtest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// state says whether a package exists yet. The table also has planned packages, so that
// they start with the right imports.
type state bool

const (
	here    state = true
	planned state = false
)

// direction is one row of the architecture: a package, and what it may import besides the
// standard library.
type direction struct {
	pkg     string // path in the module; "." is the root, "x/..." includes packages below
	state   state
	may     []string // packages of this module
	modules []string // other modules
}

// directions is the architecture: the complete list of allowed imports, lowest packages
// first.
//
//	internal/backlog ← internal/sched ← stint ← shm, queue ← stores, transfer, server ← queue/cluster ← cmd
//
// csync and retry import nothing, so that they can be used without the rest.
var directions = []direction{
	// Maps and slices that free memory when they shrink.
	{pkg: "internal/shrink", state: here},
	{pkg: "internal/backlog", state: here, may: []string{"internal/shrink"}},
	{pkg: "internal/bucket", state: here, may: []string{"internal/shrink"}},
	{pkg: "csync", state: here},
	{pkg: "retry", state: here},
	{pkg: "internal/sched", state: here, may: []string{"internal/backlog", "internal/shrink"}},
	{pkg: ".", state: here, may: []string{"internal/backlog", "internal/bucket", "internal/sched"}},

	// Keeps a log readable while one error repeats.
	{pkg: "internal/logthrottle", state: here},

	// Readings of the time, in one place.
	{pkg: "internal/clock", state: here},

	// The version of this module in a program.
	{pkg: "internal/version", state: here},

	// Cron expressions without goroutines: a part of queue that can be used alone.
	{pkg: "queue/cron", state: here},

	// The protocol does not depend on the memory that it runs on, nor the reverse.
	{pkg: "shm/internal/pool", state: here},
	{pkg: "shm/internal/arena", state: here, modules: []string{"golang.org/x/sys"}},
	{pkg: "shm", state: here, may: []string{".", "internal/bucket", "shm/internal/pool", "shm/internal/arena"}},
	{
		pkg: "queue", state: here,
		may: []string{
			".", "internal/clock", "internal/logthrottle", "internal/version", "retry", "queue/cron",
		},
	},
	// The encoding of rows, for stores that store bytes.
	{pkg: "queue/internal/record", state: here, may: []string{".", "queue"}},
	// Group commit of rows, independent of tasks and of the machine.
	{pkg: "queue/internal/journal", state: here, may: []string{"queue", "internal/shrink"}},
	// The rules of a queue for the tests of stores and for the simulation.
	{pkg: "queue/internal/reference", state: here, may: []string{".", "queue"}},
	{
		pkg: "queue/storetest", state: here,
		may: []string{".", "queue", "queue/internal/reference", "internal/seeded"},
	},
	{pkg: "queue/queuetest", state: here, may: []string{".", "internal/clock", "queue", "queue/memstore"}},

	// No store imports another; all share one state machine.
	{
		pkg: "queue/internal/machine", state: here,
		may: []string{
			".", "queue", "queue/internal/journal", "queue/internal/record", "internal/backlog", "internal/shrink",
		},
	},
	{pkg: "queue/memstore", state: here, may: []string{"internal/clock", "queue", "queue/internal/machine"}},
	// Which users' files and sockets a program trusts.
	{pkg: "internal/ownership", state: here},
	{pkg: "internal/bearer", state: here, may: []string{"internal/ownership"}},
	{pkg: "internal/peer", state: here},
	// What stores share: blocked writes, the lease log, and rows on a database server.
	{pkg: "queue/internal/stall", state: here},
	{pkg: "queue/internal/lease", state: here, may: []string{"queue", "queue/internal/machine"}},
	{
		pkg: "queue/internal/dbrows", state: here,
		may: []string{
			"queue", "queue/internal/journal", "queue/internal/lease", "queue/internal/machine", "queue/internal/stall",
			"internal/clock",
		},
	},
	// Moves rows from store to store.
	{pkg: "queue/relocate", state: here, may: []string{"queue", "queue/internal/machine"}},
	{
		pkg: "queue/filestore", state: here,
		may: []string{
			"queue", "queue/relocate", "queue/internal/lease", "queue/internal/machine", "queue/internal/stall",
			"internal/clock", "internal/logthrottle", "internal/ownership",
		},
		modules: []string{"github.com/cockroachdb/pebble/v2"},
	},
	{
		pkg: "queue/pgstore", state: here,
		may: []string{
			"queue", "queue/relocate", "queue/internal/dbrows", "queue/internal/journal", "queue/internal/machine",
			"queue/internal/router", "internal/clock", "internal/logthrottle",
		},
		modules: []string{"github.com/jackc/pgx/v5"},
	},
	{
		pkg: "queue/redisstore", state: here,
		may: []string{
			"queue", "queue/relocate", "queue/internal/dbrows", "queue/internal/journal", "queue/internal/machine",
			"internal/clock", "internal/logthrottle",
		},
		modules: []string{"github.com/redis/go-redis/v9"},
	},
	// Disturbs the connections of tests.
	{pkg: "internal/netfault", state: here},
	// Finds the ports of servers that tests start.
	{pkg: "internal/freeport", state: here},
	// Starts PostgreSQL and Redis for tests and benchmarks.
	{pkg: "internal/command", state: here},
	{
		pkg: "internal/dbserver", state: here,
		may: []string{"internal/command", "internal/freeport"}, modules: []string{"github.com/jackc/pgx/v5"},
	},
	// Starts an S3 server for tests.
	{pkg: "internal/s3gateway", state: here, may: []string{"internal/command"}},
	// The client of a store in another process, and the protocol between them.
	{pkg: "queue/httpstore", state: here, may: []string{"queue", "internal/clock", "internal/wire", "internal/peer"}},
	{pkg: "internal/wire", state: here, may: []string{"queue"}},
	{pkg: "internal/wiretest", state: here, may: []string{"internal/clock", "internal/wire"}},

	// The seam between uploads and the protocols of their servers; one package has the client of S3.
	{pkg: "transfer/internal/protocol", state: here, may: []string{"retry"}},
	{
		pkg: "transfer", state: here,
		may: []string{".", "queue", "retry", "internal/bearer", "internal/clock", "transfer/internal/protocol"},
	},
	{
		pkg: "transfer/s3", state: here, may: []string{"retry", "transfer/internal/protocol"},
		modules: []string{"github.com/minio/minio-go/v7"},
	},
	// The server side of uploads needs no queue: it can be mounted in any server.
	{
		pkg: "transfer/receiver", state: here,
		may: []string{".", "internal/clock", "internal/logthrottle"}, modules: []string{"golang.org/x/sys"},
	},
	// The page from which browsers upload is files; it knows no server.
	{pkg: "transfer/browser", state: here},
	{
		pkg: "server", state: here,
		may: []string{"csync", "queue", "internal/clock", "internal/wire", "internal/peer"},
	},
	{pkg: "server/web", state: planned},
	// One store of several, by queue.
	{pkg: "queue/internal/router", state: here, may: []string{"queue"}},
	// Several processes on one store of a database server, whichever it is.
	{pkg: "queue/cluster/internal/ledger", state: here, may: []string{"."}},
	{
		pkg: "queue/cluster", state: here,
		may: []string{
			".", "queue", "queue/cluster/internal/ledger", "queue/httpstore", "queue/internal/machine",
			"queue/internal/router", "server",
			"internal/bucket", "internal/clock", "internal/logthrottle", "internal/wire",
		},
	},

	// Child processes, and how they are ended if their parent is killed.
	{pkg: "internal/proc", state: here, modules: []string{"golang.org/x/sys"}},
	{pkg: "internal/watcher", state: here, may: []string{"internal/proc"}, modules: []string{"golang.org/x/sys"}},
	{
		pkg: "queue/isolate", state: here,
		may:     []string{"queue", "retry", "internal/clock", "internal/proc", "internal/watcher"},
		modules: []string{"golang.org/x/sys"},
	},
	// Only tests: random histories of a queue, by seed.
	{pkg: "queue/internal/simulation", state: here},

	// Only the program imports every store.
	{pkg: "cmd/...", state: here, may: []string{"..."}, modules: []string{"..."}},

	// Kills processes that use the queue.
	{
		pkg: "internal/crashtest", state: here,
		modules: []string{"golang.org/x/sys", "github.com/jackc/pgx/v5", "github.com/redis/go-redis/v9"},
	},

	// Random numbers for tests.
	{pkg: "internal/seeded", state: here},

	// The conformance tests of stint.Slots.
	{pkg: "internal/slotstest", state: here, may: []string{"."}},
	{pkg: "internal/buckettest", state: here, may: []string{".", "internal/bucket"}},

	// Example programs: they import only what users can import.
	{pkg: "examples/fileserver", state: here, may: []string{".", "shm"}},
	{pkg: "examples/uploads", state: here, may: []string{".", "transfer/browser", "transfer/receiver"}},

	// No package imports this one; it checks the files of the others.
	{pkg: "internal/archtest", state: here},
}

// testModules are the other modules that every test may import.
var testModules = []string{"github.com/google/go-cmp", scriptModule}

// TestImports reads the files without the go command, so that it also sees those for
// other systems and build tags.
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

// An import that the table allows and no file has would let a package import more than it needs.
func TestImports_AllowedAreUsed(t *testing.T) {
	files := map[string][]*goFile{} // by the pkg of their row
	for _, f := range goFiles(t) {
		if d := directionOf(path.Dir(f.path)); d != nil && inMainModule(f.path) {
			files[d.pkg] = append(files[d.pkg], f)
		}
	}
	for _, d := range directions {
		imported := func(tests bool, may, modules []string) bool {
			return slices.ContainsFunc(files[d.pkg], func(f *goFile) bool {
				return (tests || !f.isTest()) && slices.ContainsFunc(f.ast.Imports, func(spec *ast.ImportSpec) bool {
					name := strings.Trim(spec.Path.Value, `"`)
					return mayImport(name, may, modules) && !mayImport(name, nil, nil) // the standard library
				})
			})
		}
		for _, pattern := range d.may {
			if !imported(false, []string{pattern}, nil) {
				t.Errorf("%s does not import %s: remove that from its row in internal/archtest/imports_test.go", d.pkg, pattern)
			}
		}
		for _, m := range d.modules {
			if !imported(true, nil, []string{m}) {
				t.Errorf("%s does not import %s: remove that from its row in internal/archtest/imports_test.go", d.pkg, m)
			}
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
		// Tests may import the whole module: the compiler refuses cycles.
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

// inMainModule reports whether a file is in the main module and not in a nested one,
// whose packages cannot be imported.
func inMainModule(file string) bool {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			return false
		}
	}
	return true
}

// TestRootIsStandardLibraryOnly checks the packages that the compiler lists for a program
// that imports the library.
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
		return false // a library that needs a C compiler cannot simply be installed by go get
	case inModule(name):
		return slices.ContainsFunc(may, func(pattern string) bool { return matches(pattern, rel(name)) })
	case !strings.Contains(strings.Split(name, "/")[0], "."):
		return true // only paths of the standard library begin without a host
	}
	return slices.ContainsFunc(modules, func(m string) bool {
		return m == "..." || name == m || strings.HasPrefix(name, m+"/")
	})
}

// matches reports whether name is pattern, or below it if pattern ends in "...".
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

// rel returns the directory of an import path of this module: "." is the root.
func rel(name string) string {
	if name == module {
		return "."
	}
	return strings.TrimPrefix(name, module+"/")
}

// dependency is the output of go list for a package.
type dependency struct {
	ImportPath string
	Standard   bool
}

// dependencies lists all packages that building a package compiles.
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
