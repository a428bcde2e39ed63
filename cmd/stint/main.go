// Command stint limits how many commands run at once and decides which go first: it runs
// a command for each of many inputs, or works on a durable queue of commands. See
// docs/run.md.
package main

import (
	"os"

	"github.com/stintgo/stint/cmd/stint/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
