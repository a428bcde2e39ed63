package cli //nolint:testpackage // it compares the trees of commands

import (
	"maps"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// A command is the same whether it is made alone or in the tree of all, and has the name by which
// it is found.
func TestOneCommandOfTheTree(t *testing.T) {
	s := new(streams)
	whole := newRoot(s, nil)
	names := slices.Sorted(maps.Keys(constructors()))
	for _, name := range names {
		alone := newRoot(s, []string{name})
		if n := len(alone.Commands()); n != 1 {
			t.Fatalf("%s: the tree has %d commands", name, n)
		}
		want := find(t, whole, name)
		if got := find(t, alone, name); got.Name() != name || got.UsageString() != want.UsageString() {
			t.Errorf("%s alone is %s", name, got.UsageString())
		}
	}
	names = append(names, "help", "completion") // of cobra
	for _, cmd := range whole.Commands() {
		if !slices.Contains(names, cmd.Name()) {
			t.Errorf("no constructor is named %s", cmd.Name())
		}
	}
}

func find(t *testing.T, root *cobra.Command, name string) *cobra.Command {
	t.Helper()
	cmd, _, err := root.Find([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}
