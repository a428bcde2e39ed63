package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// aCommand, oneTask, someTasks, oneRegion, oneRegionOrAll, oneSchedule, twoStores and
// nothingElse validate the arguments of commands.
func aCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if meant := cmd.SuggestionsFor(args[0]); len(meant) > 0 {
		hint = "; did you mean " + strings.Join(meant, " or ") + "?"
	}
	return fmt.Errorf("%q is not a command of %s: see its --help%s", args[0], cmd.CommandPath(), hint)
}

func oneTask(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("give the ID of one task; see %s --help", cmd.CommandPath())
	}
	return nil
}

func someTasks(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("give the ID of a task, or of several; see %s --help", cmd.CommandPath())
	}
	return nil
}

func oneRegion(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("give the name of one region, as stint shm ls has it; see %s --help", cmd.CommandPath())
	}
	return nil
}

func oneRegionOrAll(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return oneRegion(cmd, args)
	}
	return nil
}

func oneSchedule(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("give the name of one schedule, as stint schedule ls has it; see %s --help", cmd.CommandPath())
	}
	return nil
}

func twoStores(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("give two stores, FROM and TO, each a directory or a URL; see %s --help", cmd.CommandPath())
	}
	return nil
}

func nothingElse(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%q is one argument too many: %s takes only flags; see its --help", args[0], cmd.CommandPath())
	}
	return nil
}
