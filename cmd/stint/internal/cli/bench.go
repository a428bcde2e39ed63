package cli

import "github.com/spf13/cobra"

func newBench(s *streams) *cobra.Command { return &cobra.Command{Use: "bench", Short: "Measure"} }
