package cli

import (
	"path/filepath"
	"strings"

	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/internal/proc"
)

// closersTable has common programs that close inherited files, and would release the
// slot at once.
var closersTable = map[string]bool{"ssh": true, "slogin": true}

// becomes returns the name of the program that args finally execute. The options of
// wrappers are not known here: the first word that can be one and is a program is taken
// for it.
func becomes(args []string) string {
	name := filepath.Base(args[0])
	for _, word := range args[1:] {
		if !run.Executes(name) {
			break
		}
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		base := filepath.Base(word)
		if _, err := proc.Look(word); err == nil || closersTable[base] {
			name = base
		}
	}
	return name
}

// held returns a script for sh -c whose last command the shell does not exec, as some
// shells would: the shell holds the slot, whatever the command does with its files. The
// newline ends the script's last line even after a backslash.
func held(script string) string { return script + "\n\nexit $?" }
