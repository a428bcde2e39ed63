package cli

import (
	"path/filepath"
	"strings"

	"github.com/stintgo/stint/internal/proc"
)

// closersTable are programs that people run so, and that would give the slot back at
// once.
var closersTable = map[string]bool{"ssh": true, "slogin": true}

// wrappersTable are programs that become the one that is named behind their options.
var wrappersTable = map[string]bool{
	"chrt": true, "env": true, "ionice": true, "nice": true,
	"nohup": true, "setsid": true, "stdbuf": true, "taskset": true,
}

// becomes is the name of the program that args turn into. The options of wrappers are
// not known here: the first word that could be one and is a program is taken for it.
func becomes(args []string) string {
	name := filepath.Base(args[0])
	for _, word := range args[1:] {
		if !wrappersTable[name] {
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

// held is a script for sh -c that the shell does not turn into its last command, as
// some shells do: the shell has the slot, whatever the command does with it. What
// ends the script's last line is a newline, even behind a backslash.
func held(script string) string { return script + "\n\nexit $?" }
