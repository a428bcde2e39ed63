package archtest_test

import (
	"fmt"
	"go/ast"
	"slices"
	"testing"
)

// habit is a call that tests may not make, because it makes them unreliable: they pass
// without showing anything, or fail on a busy machine.
type habit struct {
	pkg   string // import path; "" for a method of the test's parameter
	names []string
	say   string
	// bubble: the call is harmless in testing/synctest, where time advances only when
	// every goroutine is blocked.
	bubble bool
}

var habits = []habit{
	{
		pkg: "time", names: []string{"Sleep"}, bubble: true,
		say: "wait for the event itself, or let the test run in synctest.Test, where sleeping costs and risks nothing",
	},
	{
		pkg: "testing", names: []string{"Short"},
		say: "make the test fast enough to run always; make torture is for what cannot be",
	},
	{
		names: []string{"Skip", "Skipf", "SkipNow"},
		say:   "make the test run anywhere, or fail with the command that installs what it needs",
	},
}

// waits lists test functions that may wait for the wall clock, with the reason.
var waits = map[string]string{
	"queue/redisstore/server_test.go:until":     "a Redis server does not announce changes of its roles",
	"queue/redisstore/server_test.go:run":       "a Redis server does not announce that it answers",
	"queue/internal/dbrows/server_test.go:call": "the tests that use this server run in a bubble",
}

func TestHabits(t *testing.T) { hold(t, brokenHabits) }

func brokenHabits(f *goFile) (broken []string) {
	if !f.isTest() {
		return nil
	}
	_, virtual := f.imports("testing/synctest")
	for _, decl := range f.ast.Decls {
		for _, h := range habits {
			if h.bubble && (waits[f.path+":"+declName(decl)] != "" || inBubble(f, decl, virtual)) {
				continue
			}
			for _, use := range usesOf(f, decl, h) {
				broken = append(broken,
					fmt.Sprintf("%s: %s.%s in a test: %s", f.at(use), ast.Unparen(use.X), use.Sel.Name, h.say))
			}
		}
	}
	return broken
}

// inBubble reports whether decl runs in a bubble of testing/synctest: a test that starts
// one, or a helper function in the same file.
func inBubble(f *goFile, decl ast.Decl, virtual bool) bool {
	if !virtual {
		return false
	}
	if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && isTestName(fn.Name.Name) {
		return len(usesOf(f, decl, habit{pkg: "testing/synctest"})) > 0
	}
	return true
}

// usesOf returns the uses in decl of the names in h; without names, all uses of its
// package.
func usesOf(f *goFile, decl ast.Decl, h habit) []*ast.SelectorExpr {
	local, imported := f.imports(h.pkg)
	if h.pkg != "" && !imported {
		return nil
	}
	var uses []*ast.SelectorExpr
	ast.Inspect(decl, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || (h.names != nil && !slices.Contains(h.names, sel.Sel.Name)) {
			return true
		}
		x, ok := sel.X.(*ast.Ident)
		switch {
		case !ok:
		case h.pkg != "" && x.Name == local,
			h.pkg == "" && slices.Contains([]string{"t", "b", "f", "tb"}, x.Name):
			uses = append(uses, sel)
		}
		return true
	})
	return uses
}

func declName(decl ast.Decl) string {
	if fn, ok := decl.(*ast.FuncDecl); ok {
		return fn.Name.Name
	}
	return ""
}
