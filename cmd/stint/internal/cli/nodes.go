package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/clock"
)

const nodesLong = `List the processes that share the tasks, with the addresses by which the others reach
them: the leader, with the time for which it leads, and the processes with workers, with
the time for which these work, their slots, queues and versions. A process that has ended
is listed for a minute longer. Workers that are not in a server have no address.

Tasks in a directory have no leader: the server with the directory decides.`

func newNodes(s *streams) *cobra.Command {
	c := client{streams: s}
	cmd := &cobra.Command{
		Use: "nodes", Short: "List the servers of a store on a database server", Long: nodesLong,
		Args: nothingElse,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd, func(ctx context.Context, server *remote.Server) error {
				stats, err := server.Stats(ctx)
				if err != nil {
					return err
				}
				nodes := view.Nodes(&stats)
				if !c.json {
					return view.NodeTable(c.out, nodes, clock.Now())
				}
				for i := range nodes {
					if err := c.print(nodes[i]); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	c.register(cmd)
	return cmd
}
