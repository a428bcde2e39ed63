package archtest_test

import (
	"go/token"
	"testing"
)

// TestRulesBite checks each rule against a violation and against code that only looks
// like one: a rule that finds nothing would pass on any tree.
func TestRulesBite(t *testing.T) {
	words := func(f *goFile) []string { return wordsIn(f.path, []byte(f.ast.Comments[0].Text())) }
	claims := bypasses([]string{"Claim"})
	tests := []struct {
		name string
		rule func(*goFile) []string
		path string
		src  string
		want int
	}{
		{"root imports a lock", forbiddenImports, "x.go", `import "github.com/stintgo/stint/csync"`, 1},
		{"policy imports the root", forbiddenImports, "internal/backlog/x.go", `import "github.com/stintgo/stint"`, 1},
		{"root imports the policy", forbiddenImports, "x.go", `import "github.com/stintgo/stint/internal/backlog"`, 0},
		{"library imports a module", forbiddenImports, "retry/x.go", `import "golang.org/x/sys/unix"`, 1},
		{"also on another system", forbiddenImports, "retry/x_windows.go", `import "golang.org/x/sys/windows"`, 1},
		{"library imports C", forbiddenImports, "csync/x.go", `import "C"`, 1},
		{"program imports a module", forbiddenImports, "cmd/stint/x.go", `import "github.com/spf13/cobra"`, 0},
		{"test imports the root", forbiddenImports, "retry/x_test.go", `import "github.com/stintgo/stint"`, 0},
		{"test imports a module", forbiddenImports, "x_test.go", `import "github.com/stretchr/testify"`, 1},
		{"package without a row", forbiddenImports, "util/x.go", ``, 1},
		{"module of its own", forbiddenImports, "tools/x/x.go", `import "C"`, 0},

		{"sleep", brokenHabits, "x_test.go", `import "time"; func TestX() { time.Sleep(1) }`, 1},
		{"sleep under a name", brokenHabits, "x_test.go", `import c "time"; func TestX() { c.Sleep(1) }`, 1},
		{"sleep outside tests", brokenHabits, "x.go", `import "time"; func F() { time.Sleep(1) }`, 0},
		{"another sleep", brokenHabits, "x_test.go", `import "x/time"; func TestX() { clock.Sleep(1) }`, 0},
		{
			"sleep in a bubble", brokenHabits, "x_test.go",
			`import ("time"; "testing/synctest"); func TestX() { synctest.Test(t, func() { time.Sleep(1) }) }`, 0,
		},
		{
			"sleep beside a bubble", brokenHabits, "x_test.go",
			`import ("time"; "testing/synctest"); func TestX() { synctest.Test(t, nil) }; func TestY() { time.Sleep(1) }`, 1,
		},
		{
			"sleep for bubbles", brokenHabits, "x_test.go",
			`import ("time"; "testing/synctest"); func TestX() { synctest.Test(t, work) }; func work() { time.Sleep(1) }`, 0,
		},
		{"leaves", brokenHabits, "x_test.go", `func TestX() { b.Run(func() { b.Skipf("") }) }`, 1},
		{"walk leaves a directory", brokenHabits, "x_test.go", `func TestX() { return fs.SkipDir }`, 0},
		{"short", brokenHabits, "x_test.go", `import "testing"; func TestX() { if testing.Short != nil { return } }`, 1},

		{"bare error in a block", bareErrors, "x.go", "// Errors.\nvar (\nErrA error\n// ErrB: full.\nErrB error\n)", 1},
		{"bare error alone", bareErrors, "x.go", "var ErrA error", 1},
		{"error alone", bareErrors, "x.go", "// ErrA: full.\nvar ErrA error", 0},
		{"bare type", bareErrors, "x.go", "type PanicError struct{}", 1},
		{"error of a package", bareErrors, "x.go", "var errA, errorful error", 0},

		{"call past a wrapper", claims, "x.go", `import "github.com/stintgo/stint/queue"; type w struct{ queue.Store }`, 1},
		{"call past a wrapper of another", claims, "queue/cluster/x.go", `type w struct{ Store }; func (v) Claim() {}`, 1},
		{"wrapped call", claims, "queue/cluster/x.go", `type w struct{ Store }; func (w) Claim() {}`, 0},
		{"call wrapped at a pointer", claims, "queue/cluster/x.go", `type w struct{ Store }; func (x *w) Claim() {}`, 0},
		{"store of a type", claims, "queue/cluster/x.go", `type w struct{ s Store }`, 0},
		{"another store", claims, "x.go", `import "x/queue"; type w struct{ queue.Store }`, 0},
		{"reason that is out of date", claims, "queue/queuetest/faulty.go", `import "` + module + `/queue"
			type faulty struct{ queue.Store }; func (faulty) Claim() {}`, 2},

		// The words are assembled here, since this file would break the rule otherwise.
		{"path", words, "x.go", "// see /" + "work/main", 1},
		{"host", words, "x.md", "// from pro" + "xy.golang.org", 1},
		{"mark", words, "x.go", "// TO" + "DO: more", 1},
		{"mark in prose", words, "x.md", "// TO" + "DO: more", 0},
		{"message", words, "x.go", "// \"%.40q is n" + "o token\"", 1},
		{"message that something has ended", words, "x.go", "// \"%s is no longer Waiting\"", 0},
		{"words in words", words, "x.go", "// framework/mastodon, stubborn", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := parse(token.NewFileSet(), test.path, []byte("package x\n\n"+test.src))
			if err != nil {
				t.Fatal(err)
			}
			if got := test.rule(f); len(got) != test.want {
				t.Errorf("found %d, want %d: %q", len(got), test.want, got)
			}
		})
	}
}
