package browsertest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
)

// The scheduler with a server and a clock of the test: priorities, retries, rates, and random orders after each of
// which slots, states and requests agree. The tests are in scheduler_test.mjs.
func TestE2_SchedulerInNode(t *testing.T) {
	// In a copy of the page, files with the extension .js are ES modules for Node.js too.
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "transfer", "browser", "page"))); err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("scheduler_test.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"package.json": []byte(`{"type":"module"}`), "scheduler_test.mjs": tests,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	node := exec.CommandContext(ctx, "node", "scheduler_test.mjs", strconv.FormatUint(seeded.Seed(t), 10))
	node.Dir = dir
	if out, err := node.CombinedOutput(); err != nil {
		t.Errorf("node: %v\n%s", err, out)
	}
}
