package archtest_test

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// left names methods of queue.Store that a type leaves to the store which it embeds.
type left struct{ methods, why string }

// wrappers has a row for each type that embeds a queue.Store. When the interface gets a method,
// the compiler names the stores that lack it, but none of these types: they leave it to the
// embedded store.
var wrappers = map[string][]left{
	"queue/cluster/checked.go:checked": {
		{"Maintain", "makes changes, which the database refuses; it answers only when to call it again"},
		{"Listen", "a signal may be spurious"},
		{"Watch", "an event may be of a change that does not become durable"},
		{"Close", "answers nothing"},
	},
	"queue/cluster/checked.go:listed": {
		{
			"Submit Claim Settle Heartbeat Command Find Explain Maintain Listen Watch Close " +
				"Configure PauseQueue Settings Schedules Reschedule",
			"only Stats names nodes",
		},
	},
	"queue/internal/router/groupstore.go:groupStore": {
		{"Settle Heartbeat Command Find Explain", "are about tasks of this store, whichever they name"},
		{"Stats Settings Schedules Maintain Watch Close", "are about the whole store"},
		{"Listen", "signals nothing for a queue of another group, which has no tasks here"},
	},
	"queue/queuetest/faulty.go:faulty": {
		{"Listen Close", "are documented not to go through Around"},
	},
}

// TestWrappers: a type that embeds a store declares each of its methods, or has a reason not to.
func TestWrappers(t *testing.T) {
	hold(t, bypasses(interfaceMethods(t, "Store")))
	found := make(map[string]bool)
	for _, f := range goFiles(t) {
		for _, name := range embedders(f) {
			found[f.path+":"+name] = true
		}
	}
	for row := range wrappers {
		if !found[row] {
			t.Errorf("%s embeds no store: remove its row", row)
		}
	}
}

// interfaceMethods returns the methods of an interface of package queue, with those of the
// interfaces that it embeds.
func interfaceMethods(t *testing.T, name string) (methods []string) {
	t.Helper()
	for _, f := range goFiles(t) {
		if path.Dir(f.path) != "queue" || f.isTest() {
			continue
		}
		for _, spec := range typesOf(f) {
			of, ok := spec.Type.(*ast.InterfaceType)
			if !ok || spec.Name.Name != name {
				continue
			}
			for _, m := range of.Methods.List {
				if embedded, ok := m.Type.(*ast.Ident); ok {
					methods = append(methods, interfaceMethods(t, embedded.Name)...)
				}
				for _, id := range m.Names {
					methods = append(methods, id.Name)
				}
			}
		}
	}
	return methods
}

// bypasses returns the rule that a type which embeds a store declares each of some methods, in
// the same file, unless its row leaves it to that store.
func bypasses(methods []string) func(*goFile) []string {
	return func(f *goFile) (broken []string) {
		for _, name := range embedders(f) {
			row := f.path + ":" + name
			declares := declaredBy(f, name)
			leaves := make(map[string]bool)
			for _, l := range wrappers[row] {
				for m := range strings.FieldsSeq(l.methods) {
					leaves[m] = true
				}
			}
			for _, m := range methods {
				if !declares[m] && !leaves[m] {
					broken = append(broken, fmt.Sprintf("calls of %s bypass %s: declare the method there, or add it to wrappers "+
						"with the reason", m, row))
				}
			}
			for _, m := range slices.Sorted(maps.Keys(leaves)) {
				if declares[m] || !slices.Contains(methods, m) {
					broken = append(broken, fmt.Sprintf("%s does not leave %s to a store: remove it from wrappers", row, m))
				}
			}
		}
		return broken
	}
}

// embedders returns the names of the structs of a file that embed a store as an interface.
func embedders(f *goFile) (names []string) {
	if f.isTest() {
		return nil
	}
	for _, spec := range typesOf(f) {
		of, ok := spec.Type.(*ast.StructType)
		if ok && slices.ContainsFunc(of.Fields.List, func(field *ast.Field) bool {
			return len(field.Names) == 0 && isStore(f, field.Type)
		}) {
			names = append(names, spec.Name.Name)
		}
	}
	return names
}

// isStore reports whether a type is the interface Store of queue or of queue/cluster.
func isStore(f *goFile, of ast.Expr) bool {
	stores := []string{"queue", "queue/cluster"}
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name == "Store" && slices.Contains(stores, path.Dir(f.path))
	case *ast.SelectorExpr:
		x, ok := of.X.(*ast.Ident)
		return ok && of.Sel.Name == "Store" && slices.ContainsFunc(stores, func(pkg string) bool {
			local, imported := f.imports(module + "/" + pkg)
			return imported && x.Name == local
		})
	}
	return false
}

// typesOf returns the types that a file declares.
func typesOf(f *goFile) (specs []*ast.TypeSpec) {
	for _, decl := range f.ast.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range block.Specs {
			if spec, ok := spec.(*ast.TypeSpec); ok {
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

// declaredBy returns the methods that a file declares of a type.
func declaredBy(f *goFile, name string) map[string]bool {
	methods := make(map[string]bool)
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv == nil {
			continue
		}
		of := fn.Recv.List[0].Type
		if pointer, ok := of.(*ast.StarExpr); ok {
			of = pointer.X
		}
		if id, ok := of.(*ast.Ident); ok && id.Name == name {
			methods[fn.Name.Name] = true
		}
	}
	return methods
}
