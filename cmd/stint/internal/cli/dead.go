package cli

import (
	"github.com/spf13/cobra"

	"github.com/stintgo/stint/queue"
)

const deadLong = `List the dead letters, the newest first; run them again, or forget them. Dead letters
are tasks that have failed too often, could not be run, or have crashed their worker
repeatedly. They are kept for 30 days, and up to 100,000 of them.

Without a command, stint dead lists them, as stint dead ls does.`

func newDead(s *streams) *cobra.Command {
	dead := []queue.State{queue.Dead}
	cmd, ls := newLs(s, dead...), newLs(s, dead...)
	cmd.Use, cmd.Short, cmd.Long = "dead [flags]", "List, retry and purge dead letters", deadLong+clientHelp
	cmd.Example = "  stint dead\n  stint dead ls --error 'exit status 28'\n" +
		"  stint dead retry --kind command --key example.org\n  stint dead purge --all"
	cmd.Args, cmd.DisableFlagsInUseLine, cmd.SuggestionsMinimumDistance = aCommand, true, 2
	ls.Short, ls.Long, ls.Example = "List dead letters", "List dead letters, the newest first."+clientHelp, ""
	cmd.AddCommand(ls,
		newOrder(s, order{
			name: "retry", short: "Run dead letters again", do: queue.OrderRetry, done: "to run again", states: dead,
			long: "Run dead letters again, with all their attempts.",
		}),
		newOrder(s, order{
			name: "purge", short: "Forget dead letters", do: queue.OrderForget, done: "forgotten", states: dead,
			long: "Forget dead letters. Tasks that come after one of them are cancelled, since it will\nnever succeed.",
		}))
	return cmd
}
