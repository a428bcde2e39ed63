package cli

import (
	"github.com/spf13/cobra"

	"github.com/stintgo/stint/queue"
)

const deadLong = `List the dead letters, run them again, or forget them: tasks that have failed too
often, could not be run, or have killed their worker again and again. They are kept
for 30 days, and up to 100,000 of them.`

func newDead(s *streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "dead", Short: "List, retry and purge dead letters", Long: deadLong,
		Example: "  stint dead ls --error 'exit status 28'\n  stint dead retry --kind command --key example.org\n" +
			"  stint dead purge --all",
		Args: aCommand, RunE: help, DisableFlagsInUseLine: true, SuggestionsMinimumDistance: 2,
	}
	dead := []queue.State{queue.Dead}
	ls := newLs(s, dead...)
	ls.Short, ls.Long, ls.Example = "List dead letters", "List dead letters, the newest first."+clientHelp, ""
	cmd.AddCommand(ls,
		newOrder(s, order{
			name: "retry", short: "Run dead letters again", do: queue.OnRetry, done: "to run again", states: dead,
			long: "Run dead letters again, with all their attempts.",
		}),
		newOrder(s, order{
			name: "purge", short: "Forget dead letters", do: queue.OnForget, done: "forgotten", states: dead,
			long: "Forget dead letters. Tasks that come after one of them are cancelled, since it will\nnever succeed.",
		}))
	return cmd
}
