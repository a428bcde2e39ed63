package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/shm"
)

const shmLong = `List and remove regions, which processes of this machine share by a name: the slots of
stint sem and stint run --shared, and regions that programs in Go open with package shm.`

const shmLsLong = `List the regions that processes share, or show one of them in full: its limits,
mutexes and rates, how many slots are taken, and the processes that hold them or have
the region open. The list has the regions whose names have no slash: a region that is
named by the path of its file is only shown if it is given.

A region that no process has open stays until it is removed or the machine is started
again. The slots of a process that has ended are free for the next process that asks:
they do not count as taken. With NAME such a process is listed as ended, and in JSON as
dead. With --json there is a line of JSON for each region.

Exit status: 0; 1 if there is no such region; 125 for errors.`

const shmRmLong = `Remove a region that no process has open.

That is only needed to forget its number of slots, which commands without --max would
use. A region that a process has open is not removed: the message names the processes.

Exit status: 0 if it was removed; 1 if there is no such region; 125 for errors.`

const shmExamples = `  stint shm ls
  stint shm ls io --json | jq '.slots[0].holders[] | select(.dead|not).pid'
  stint shm rm io`

func newShm(s *streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "shm", Short: "List and remove what processes share", Long: shmLong,
		Example: shmExamples, Args: aCommand, RunE: help, DisableFlagsInUseLine: true, SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newShmLs(s), newShmRm())
	return cmd
}

func newShmLs(s *streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls [flags] [NAME]", Short: "List regions, and the processes that use them", Long: shmLsLong,
		Args: oneRegionOrAll, ValidArgsFunction: completeRegions,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := regions(args)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printEach(s, all)
			case len(args) > 0:
				return view.Region(s.out, &all[0])
			}
			return view.Regions(s.out, all)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// regions inspects one region, or all that have a name.
func regions(names []string) ([]shm.Info, error) {
	if len(names) == 0 {
		return shm.List()
	}
	info, err := shm.Inspect(names[0])
	return []shm.Info{info}, noRegion(names[0], err)
}

// noRegion returns the error for a missing region, or err.
func noRegion(name string, err error) error {
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	remedy := "stint shm ls lists the regions"
	if strings.ContainsRune(name, '/') {
		remedy = "a name with a slash is the path of a file"
	}
	return nothing(fmt.Errorf("there is no region %s; %s", name, remedy))
}

func printEach(s *streams, all []shm.Info) error {
	out := json.NewEncoder(s.out)
	for i := range all {
		if err := out.Encode(all[i]); err != nil {
			return err
		}
	}
	return nil
}

func newShmRm() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Remove a region that no process uses", Long: shmRmLong, DisableFlagsInUseLine: true,
		Args: oneRegion, ValidArgsFunction: completeRegions,
		RunE: func(_ *cobra.Command, args []string) error { return noRegion(args[0], shm.Remove(args[0])) },
	}
}
