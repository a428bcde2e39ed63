package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/clock"
)

const nodesLong = `List the processes that share the tasks, with the address by which the others reach
them: the one that leads, since when, and those that have workers, since when, with
their slots, queues and versions. A process that has ended is listed for a minute
longer, without its address; so is a worker of a process that is no server.

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
