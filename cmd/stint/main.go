// Command stint decides how much runs at once, and what goes first: it runs a
// command for each of many inputs. See docs/run.md.
package main

import (
	"os"

	"github.com/stintgo/stint/cmd/stint/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
